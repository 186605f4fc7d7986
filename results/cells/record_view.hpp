// The interface by which a command shows its records: sentences, and a part of the report page. A view is a
// plug-in in the folder of its command. `report`, and the commands that print sentences under a table, only
// call views. So they need not know any metric. Records of a command without a view are listed metric by
// metric.
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

// One figure of the table that shows all tiers side by side: a cell of it.
struct TierFigure {
  std::string tier;                // the row
  std::string column;              // what the figure is, with its unit: "reads, cold, MiB/s"
  double value = 0;                // in that unit
  const Record* record = nullptr;  // where the figure comes from
};

// The view of one command: a table of functions. `names` and `labels` get only records of this command. All
// other functions get records of all commands, in any order, and must select those that they show.
struct RecordView {
  std::string_view name;        // the name of the command
  int order = 0;                // order among the views: a lower number comes earlier on the page
  std::string_view topic = {};  // what these records are about, for the title of a page: "reading"
  // If a record has no throughput, one figure represents it: the first of these metrics that it has.
  std::span<const MetricInfo> headline = {};
  // Whether the view's section already compares the arms of an interleaved run, so that the report need not.
  bool compares_arms = false;

  // Whether the record has a row in the section of this view.
  bool (*has_row)(const Record& record);
  // Adds to `out` the records whose work a later record has repeated. The view does not show them.
  void (*add_superseded)(std::span<const Record> records, std::set<const Record*>& out);
  // A name for each record of this command, for use in sentences: "disk cold at 4 threads".
  std::vector<std::string> (*names)(ShownRecords records);
  // The words that distinguish the record from others in a table: "4 threads", "cold". The mini-app, the tier
  // and the labels that the user gave need not be among these words, because a table always shows them.
  std::vector<std::string> (*labels)(const Record& record);
  // Adds the sentences that the view makes about the records to `out`.
  void (*describe)(std::span<const Record> records, const Output& output, std::vector<Sentence>& out);
  // The conclusion from the records in exactly three sentences: what limits, by how much, and what to do. A
  // sentence that the figures do not prove says instead what cannot be told, or what to run. Empty if no
  // record has figures of this view.
  std::vector<std::string> (*bottom_line)(std::span<const Record> records, const Output& output);
  // The tiles (boxes with one large number each) at the top of the report page, made by tile_html().
  std::vector<std::string> (*tiles)(std::span<const Record> records, report::PageState& state);
  // The best figures of each tier, for a table of all tiers; nullptr if the view has none.
  std::vector<TierFigure> (*figures)(std::span<const Record> records, const Output& output) = nullptr;
  // The view's section of the report page, as finished HTML; "" if there are no records for it. What it
  // adds by add_chart(), add_bars() and add_sheet() also becomes a file of `report --to csv`.
  std::string (*section)(std::span<const Record> records, report::PageState& state);
};

const Registry<RecordView>& view_registry();
std::vector<const RecordView*> ordered_views();
const RecordView* find_view(std::string_view command);  // the view of a command; nullptr if it has none

}  // namespace penstock
