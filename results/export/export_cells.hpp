// What several exporters need: the cells of a set of records with their names, and the metrics that are worth
// exporting.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "results/cells/headlines.hpp"
#include "results/record/store.hpp"

namespace penstock {

// The name of the tier that was measured. For a record of checkpoints it is the tier on which they are safe.
// "" if the record has none.
std::string measured_tier(const Record& record);

struct ExportCell {
  // Like "read/disk/threads:4/cache:cold". It is made from the requested parameters, so a cell has the same
  // name in every set of records. One exception: if cells of one set would have the same name, what
  // distinguishes them (such as a label) is added.
  std::string name;
  std::vector<const Record*> records;  // the records of the cell, in the order of the set
};
// `set` must outlive the cells.
std::vector<ExportCell> export_cells(const RecordSet& set);

// Decides which metrics of a set of records are exported.
class ExportedMetrics {
 public:
  ExportedMetrics(const RecordSet& set, Commands commands);

  // Whether `penstock compare` compares this metric unless the user names others.
  bool is_headline(const Record& record, std::string_view metric) const;
  // Whether the metric belongs into a table of results: a headline, a throughput, or a percentile.
  bool is_listed(const Record& record, std::string_view metric) const;

 private:
  Commands commands_;
  std::map<std::string, Headlines, std::less<>> headlines_;  // by command
};

// Joins the metric of all usable records of the cell. It has no samples if none of them has it.
Metric joined_metric(const ExportCell& cell, const std::string& metric);

}  // namespace penstock
