// The interface by which a command shows its records: its sentences and its part of the report. A view is a
// plug-in in the folder of its command. `report` and the sentences under a table call only views, and name no
// metric. Records of a command without a view are listed metric by metric.
#pragma once

#include <set>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/metric.hpp"
#include "io_backends/core/plugin.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/record.hpp"

namespace penstock {

namespace report {
struct PageState;
}

using ShownRecords = std::span<const Record* const>;  // the records that tables and charts show

// Each function gets the records of all commands, in any order, and uses only those of its own command.
struct RecordView {
  std::string_view name;  // the name of the command
  int order = 0;          // the position of its sentences and sections among those of other views
  // Represents a record by one figure if it has no throughput: the first of these metrics that it has.
  std::span<const MetricInfo> headline = {};
  bool compares_arms = false;  // its section already compares the arms of an interleaved run

  // Whether the record has a row in the section of this view.
  bool (*has_row)(const Record& record);
  // Adds to `out` the records that the view leaves out because a later record has the same work.
  void (*add_superseded)(std::span<const Record> records, std::set<const Record*>& out);
  // Names for records of this command in a sentence, one for each: "disk cold at 4 threads".
  std::vector<std::string> (*names)(ShownRecords records);
  // The words that distinguish a record from others in a table, besides app, tier and labels: "4 threads",
  // "cold".
  std::vector<std::string> (*labels)(const Record& record);
  // Adds the sentences about the records to `out`.
  void (*describe)(std::span<const Record> records, const Output& output, std::vector<Sentence>& out);
  // The tiles at the top of the report page, one large number each, made by tile_html().
  std::vector<std::string> (*tiles)(std::span<const Record> records, report::PageState& state);
  // The section as finished HTML; "" if there are no records for it. Its tables and charts are also the files
  // of `report --to csv`.
  std::string (*section)(std::span<const Record> records, report::PageState& state);
};

const Registry<RecordView>& view_registry();
std::vector<const RecordView*> ordered_views();
const RecordView* find_view(std::string_view command);  // nullptr: the command has none

}  // namespace penstock
