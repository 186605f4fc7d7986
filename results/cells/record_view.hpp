// How the records of one command are shown: its sentences and its part of the report. A view is a plug-in in
// the folder of its command; `report` and the sentences under a table use views alone and name no metric.
// Records of a command without a view are listed metric by metric.
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

using Shown = std::span<const Record* const>;  // the records that tables and charts show

// All functions get records of every command, in any order, and take those that they know.
struct RecordView {
  std::string_view name;  // of the command
  int order = 0;          // of its sentences and sections among those of other views
  // One figure of a record is what it moved per second, else the first of these that it has.
  std::span<const MetricInfo> headline = {};
  bool compares_arms = false;  // its section compares runs that were measured in turn

  // The record has a row in the section.
  bool (*shows)(const Record& record);
  // Adds the records that are in no group because a later one did the same work.
  void (*add_superseded)(std::span<const Record> records, std::set<const Record*>& out);
  // Names records of the command in a sentence, one name each: "disk cold at 4 threads".
  std::vector<std::string> (*cells)(Shown records);
  // What tells a record of the command from others in a table, besides app, tier and labels: "4 threads",
  // "cold".
  std::vector<std::string> (*label)(const Record& record);
  void (*describe)(std::span<const Record> records, const Output& output, std::vector<Sentence>& out);
  // The numbers of the first screen (tile_html()).
  std::vector<std::string> (*tiles)(std::span<const Record> records, report::PageState& state);
  // Finished HTML; its tables and charts are also the files of `report --to csv`. "" without records for it.
  std::string (*section)(std::span<const Record> records, report::PageState& state);
};

const Registry<RecordView>& view_registry();
std::vector<const RecordView*> ordered_views();
const RecordView* find_view(std::string_view command);  // nullptr: the command has none

}  // namespace penstock
