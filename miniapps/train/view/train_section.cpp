// Writes the report's section about training: the wait for input that prefetching removed, and the times of
// each stage of the pipeline.
#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "miniapps/train/stage_times.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/view/train_cells.hpp"
#include "miniapps/train/view/train_parts.hpp"
#include "miniapps/train/view/waterfall.hpp"
#include "results/cells/cells.hpp"
#include "results/report/heat_map.hpp"
#include "results/report/html.hpp"

namespace penstock::report {
namespace {

using namespace train_metrics;
using namespace saving_metrics;

using Kind = HtmlTable::Kind;

HtmlTable prefetch_table(const TrainGroup& group, const PageState& state) {
  HtmlTable table(
      group.title,
      {{"prefetch", Kind::number, "batches that may be ready ahead of the accelerator"},
       {"samples/s", Kind::number, ""},
       {std::string(rate_unit(state.output)), Kind::number, "payload"},
       {"AU", Kind::number,
        "accelerator utilization: steps x nominal step / time, without the first step, checkpoints "
        "and validation"},
       {"wait a step", Kind::number, "how long the accelerator waited for input, on average"},
       {"less waiting", Kind::number, "1 - wait / wait with prefetch 0"},
       {"first batch", Kind::number, ""},
       {"wall", Kind::number, "to the end of the last step"},
       {"steps", Kind::number, ""},
       {"verdict", Kind::words, ""},
       {"record", Kind::number, ""}});
  for (const auto& [prefetch, record] : group.at) {
    const auto samples = metric_value(*record, kSampleRate);
    const auto bytes = metric_value(*record, kPayloadRate);
    const auto steps = metric_value(*record, kSteps);
    table.row({text(std::to_string(prefetch)), text(or_dash(samples, format_number, state.output)),
               text(rate_or_dash(bytes, state.output)),
               text(or_dash(metric_value(*record, kUtilization), format_percent)),
               text(or_dash(input_wait_per_step(*record), format_seconds)),
               text(or_dash(hidden_by_prefetch(group, prefetch), format_percent)),
               text(or_dash(metric_value(*record, kFirstBatch), format_seconds)),
               text(or_dash(metric_value(*record, shared_metrics::kWall), format_seconds)),
               text(steps ? fmt::format("{:.0f}", *steps) : "-"), Markup{verdict_html(record->verdict)},
               state.record_link(*record)});
  }
  return table;
}

std::string prefetch_bars(const TrainGroup& group, PageState& state) {
  std::vector<Bar> bars;
  for (const auto& [prefetch, record] : group.at) {
    const auto wait = input_wait_per_step(*record);
    const auto step = metric_value(*record, kStep);
    if (!wait || !step) continue;
    bars.push_back({fmt::format("prefetch {}", prefetch),
                    {{"busy", "the accelerator computes", *step}, {"starved", "it waits for input", *wait}}});
  }
  return bars.empty() ? ""
                      : state.add_bars("One step: computing and waiting for input, " + group.title, bars);
}

std::string stages_html(const TrainGroup& group, PageState& state) {
  std::string out;
  for (const auto& [prefetch, record] : group.at) {
    const std::vector<StageTally> stages = stage_times(*record);
    if (stages.empty()) continue;
    const std::string caption = fmt::format("Stages of {} with prefetch {}", group.title, prefetch);
    HtmlTable table(caption, {{"stage", Kind::words, ""},
                              {"busy", Kind::number, "worked, summed over its threads"},
                              {"starved", Kind::number, "waited for the stage before it"},
                              {"blocked", Kind::number, "waited for space in the queue after it"},
                              {"busy share", Kind::number,
                               "busy / (wall time x threads x ranks); of the accelerator see AU"}});
    std::vector<Bar> bars;
    for (const StageTally& stage : stages) {
      bars.push_back({stage.stage,
                      {{"busy", "busy", stage.busy_s},
                       {"starved", "starved", stage.starved_s},
                       {"blocked", "blocked", stage.blocked_s}}});
      table.row({stage.stage, format_seconds(stage.busy_s), format_seconds(stage.starved_s),
                 format_seconds(stage.blocked_s), busy_share_text(*record, stage)});
    }
    out += "<div class=\"side-by-side\">\n" + state.add_bars(caption, bars) + table.html() + "</div>\n";
  }
  return out;
}

// Draws bars for four parts of the wall time: only steps, steps and reading at the same time, only reading,
// and neither.
std::string overlap_bars(const TrainGroup& group, PageState& state) {
  std::vector<Bar> bars;
  for (const auto& [prefetch, record] : group.at) {
    const auto read_s = metric_value(*record, kReadMerged);
    const auto steps_s = metric_value(*record, kTrainMerged);
    const auto overlap_s = metric_value(*record, kReadTrainOverlap);
    const auto wall_s = metric_value(*record, shared_metrics::kWall);
    if (!read_s || !steps_s || !overlap_s || !wall_s) continue;
    bars.push_back({fmt::format("prefetch {}", prefetch),
                    {{"busy", "steps alone", std::max(0.0, *steps_s - *overlap_s)},
                     {"both", "steps and reading", *overlap_s},
                     {"starved", "reading alone", std::max(0.0, *read_s - *overlap_s)},
                     {"idle", "neither", std::max(0.0, *wall_s - *read_s - *steps_s + *overlap_s)}}});
  }
  return bars.empty() ? "" : state.add_bars("Reading and steps in the timeline of " + group.title, bars);
}

// Makes a table of the time spent in reading, measured in two ways: as merged intervals, where reads at the
// same time count once, and as the sum over the workers.
std::string timeline_html(const TrainGroup& group, PageState& state) {
  const std::string rate(rate_unit(state.output));
  HtmlTable table(
      "Reading in the timeline of " + group.title,
      {{"prefetch", Kind::number, "batches that may be ready ahead of the accelerator"},
       {"read, merged", Kind::number, "at least one worker was reading; waiting for a processor counts"},
       {"read share", Kind::number, "of the wall"},
       {"under steps", Kind::number, "of the merged time: an accelerator computed meanwhile"},
       {"read, summed", Kind::number, "over all workers"},
       {"steps, merged", Kind::number, "the accelerator computed"},
       {rate + " merged", Kind::number, "bytes read over merged time: of all workers"},
       {rate + " summed", Kind::number, "bytes read over summed time: of one worker"}});
  for (const auto& [prefetch, record] : group.at) {
    const auto read = metric_value(*record, kReadMerged);
    if (!read) continue;
    const auto overlap = metric_value(*record, kReadTrainOverlap);
    table.row({std::to_string(prefetch), format_seconds(*read),
               or_dash(metric_value(*record, kReadShare), format_percent),
               overlap && *read > 0 ? format_percent(*overlap / *read) : "-",
               or_dash(metric_value(*record, kReadSummed), format_seconds),
               or_dash(metric_value(*record, kTrainMerged), format_seconds),
               rate_or_dash(metric_value(*record, kReadMergedRate), state.output),
               rate_or_dash(metric_value(*record, kReadSummedRate), state.output)});
  }
  if (table.empty()) return "";
  const std::string bars = overlap_bars(group, state);
  return (bars.empty() ? table.html() : "<div class=\"side-by-side\">\n" + bars + table.html() + "</div>\n") +
         "<p class=\"lead\">Merged intervals count what several workers do at a time once. They hold what "
         "reads "
         "wait for: the device, its queue, the network, and, while others decode or step, a free processor. "
         "So "
         "they are no device time, and bytes over them are no device's bandwidth.</p>\n";
}

std::string waterfalls_html(const TrainGroup& group, PageState& state) {
  std::string out;
  for (const auto& [prefetch, record] : group.at)
    out += waterfall_html(fmt::format("Where the time went, {} with prefetch {}", group.title, prefetch),
                          *record, state);
  return out.empty() ? out : "<div class=\"side-by-side\">\n" + out + "</div>\n";
}

// A heat map of the grid: accelerator utilization, or samples/s if no record has a nominal step time.
std::string grid_html(const TrainGrid& grid, PageState& state) {
  const bool shows_utilization = grid_shows_utilization(grid);
  HeatMap map;
  map.title = grid.title + (shows_utilization ? ": accelerator utilization (AU)" : ": samples/s");
  map.row_label = "threads";
  double largest = 0;
  for (const uint64_t prefetch : grid.prefetches)
    map.column_names.push_back(fmt::format("prefetch {}", prefetch));
  for (const auto& [threads, row] : grid.at) {
    map.row_names.push_back(std::to_string(threads));
    map.cells.emplace_back();
    for (const uint64_t prefetch : grid.prefetches) {
      HeatCell cell;
      if (const auto at = row.find(prefetch); at != row.end()) {
        cell.record = at->second;
        cell.value = metric_value(*at->second, shows_utilization ? kUtilization : kSampleRate);
      }
      if (cell.value)
        cell.text =
            shows_utilization ? format_percent(*cell.value) : format_number(*cell.value, state.output);
      largest = std::max(largest, cell.value.value_or(0));
      map.cells.back().push_back(std::move(cell));
    }
  }
  map.highest = shows_utilization ? 1 : largest;
  map.lowest_text = shows_utilization ? "0%" : "0";
  map.highest_text = shows_utilization ? "100%" : format_number(largest, state.output);
  return heat_map_html(map, state);
}

}  // namespace

std::string train_section(std::span<const Record> records, PageState& state) {
  const std::vector<TrainGroup> groups = train_groups(records);
  if (groups.empty()) return "";
  std::string out =
      state.open_section("training", "Training",
                         "A pipeline reads, decodes and batches real samples while an "
                         "accelerator steps at fixed deadlines. Prefetching "
                         "lets the next batches form while a step runs. A stage is busy, "
                         "starved by the stage before it, or blocked by the "
                         "queue after it; the times are summed over its threads. The accelerator's "
                         "busy time is given as accelerator utilization (AU), which leaves out "
                         "the first step, checkpoints and validation.",
                         state.answers({"fed", "utilization", "grid", "lost", "bottleneck"}));
  const std::vector<TrainGrid> grids = train_grids(records);
  for (size_t i = 0; i < grids.size(); ++i)
    out += part_html(i, group_anchor("training-grid", i), grids[i].title + ": threads and prefetch",
                     grid_html(grids[i], state));
  for (size_t i = 0; i < groups.size(); ++i) {
    const TrainGroup& group = groups[i];
    std::string part = "<div class=\"side-by-side\">\n" + prefetch_bars(group, state);
    part += prefetch_table(group, state).html() + "</div>\n";
    part += waterfalls_html(group, state);
    part += stages_html(group, state);
    out += part_html(i, group_anchor("training", i), group.title, part + timeline_html(group, state));
  }
  return out + "</section>\n";
}

}  // namespace penstock::report
