// Training: what prefetching hid and where each stage of the pipeline spent its time.
#include <fmt/format.h>

#include <algorithm>

#include "results/cells.hpp"
#include "results/report/bars.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"
#include "results/table.hpp"
#include "results/verdicts.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;

std::optional<double> computing_per_step(const Record& record) {
  if (const auto step = metric_value(record, "step_s")) return step;
  return std::nullopt;
}

std::string seconds_or_dash(std::optional<double> seconds) {
  return seconds ? format_seconds(*seconds) : "-";
}

std::string percent_or_dash(std::optional<double> fraction) {
  return fraction ? format_percent(*fraction) : "-";
}

std::string rate_or_dash(std::optional<double> rate, const Output& output) {
  return rate ? format_rate(*rate, output) : "-";
}

HtmlTable prefetch_table(const TrainGroup& group, const PageState& state) {
  HtmlTable table(group.title,
                  {{"prefetch", Kind::number, "batches that may be ready ahead of the accelerator"},
                   {"samples/s", Kind::number, ""},
                   {std::string(rate_unit(state.output)), Kind::number, "payload"},
                   {"accelerator busy", Kind::number, "steps x nominal step / time, the first step left out"},
                   {"wait a step", Kind::number, "how long the accelerator waited for input, on average"},
                   {"less waiting", Kind::number, "1 - wait / wait with prefetch 0"},
                   {"first batch", Kind::number, ""},
                   {"wall", Kind::number, "to the end of the last step"},
                   {"steps", Kind::number, ""},
                   {"verdict", Kind::words, ""}});
  for (const auto& [prefetch, record] : group.at) {
    const auto samples = metric_value(*record, "samples_per_s");
    const auto bytes = metric_value(*record, "payload_bytes_per_s");
    const auto steps = metric_value(*record, "steps");
    table.row({text(std::to_string(prefetch)), text(samples ? format_number(*samples) : "-"),
               text(bytes ? format_rate(*bytes, state.output) : "-"),
               text(percent_or_dash(metric_value(*record, "accelerator_utilization"))),
               text(seconds_or_dash(input_wait_per_step(*record))),
               text(percent_or_dash(hidden_by_prefetch(group, prefetch))),
               text(seconds_or_dash(metric_value(*record, "first_batch_s"))),
               text(seconds_or_dash(metric_value(*record, "wall_s"))),
               text(steps ? fmt::format("{:.0f}", *steps) : "-"), Markup{verdict_html(record->verdict)}});
  }
  return table;
}

std::string prefetch_bars(const TrainGroup& group) {
  std::vector<Bar> bars;
  for (const auto& [prefetch, record] : group.at) {
    const auto wait = input_wait_per_step(*record);
    const auto step = computing_per_step(*record);
    if (!wait || !step) continue;
    bars.push_back({fmt::format("prefetch {}", prefetch),
                    {{"busy", "the accelerator computes", *step}, {"starved", "it waits for input", *wait}}});
  }
  return bars.empty() ? "" : bars_html("One step: computing and waiting for input", bars);
}

std::string stages_html(const TrainGroup& group) {
  std::string out;
  for (const auto& [prefetch, record] : group.at) {
    const std::vector<StageTimes> stages = stage_times(*record);
    if (stages.empty()) continue;
    const std::string caption = fmt::format("Stages of {} with prefetch {}", group.title, prefetch);
    HtmlTable table(caption, {{"stage", Kind::words, ""},
                              {"busy", Kind::number, "worked, summed over its threads"},
                              {"starved", Kind::number, "waited for the stage before it"},
                              {"blocked", Kind::number, "waited for room in the queue behind it"},
                              {"busy share", Kind::number, ""}});
    std::vector<Bar> bars;
    for (const StageTimes& stage : stages) {
      bars.push_back({stage.stage,
                      {{"busy", "busy", stage.busy_s},
                       {"starved", "starved", stage.starved_s},
                       {"blocked", "blocked", stage.blocked_s}}});
      table.row({stage.stage, format_seconds(stage.busy_s), format_seconds(stage.starved_s),
                 format_seconds(stage.blocked_s),
                 stage.total_s() > 0 ? format_percent(stage.busy_s / stage.total_s()) : "-"});
    }
    out += "<div class=\"beside\">\n" + bars_html(caption, bars) + table.html() + "</div>\n";
  }
  return out;
}

// Reading by merged intervals and by their sum, side by side.
std::string timeline_html(const TrainGroup& group, const PageState& state) {
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
    const auto read = metric_value(*record, "read_merged_s");
    if (!read) continue;
    const auto both = metric_value(*record, "read_train_overlap_s");
    table.row({std::to_string(prefetch), format_seconds(*read),
               percent_or_dash(metric_value(*record, "read_share")),
               both && *read > 0 ? format_percent(*both / *read) : "-",
               seconds_or_dash(metric_value(*record, "read_summed_s")),
               seconds_or_dash(metric_value(*record, "train_merged_s")),
               rate_or_dash(metric_value(*record, "read_merged_bytes_per_s"), state.output),
               rate_or_dash(metric_value(*record, "read_summed_bytes_per_s"), state.output)});
  }
  if (table.empty()) return "";
  return table.html() +
         "<p class=\"lead\">Merged intervals count what several workers do at a time once. They hold what "
         "reads "
         "wait for: the device, its queue, the network, and, beside decoding and steps, a free processor. So "
         "they are no device time, and bytes over them are no device's bandwidth.</p>\n";
}

// One number each: how busy the accelerator was, or, where none has a step, the rate.
std::string grid_cell(const Record& record, bool busy) {
  const auto value = metric_value(record, busy ? "accelerator_utilization" : "samples_per_s");
  if (!value) return "-";
  return busy ? format_percent(*value) : format_number(*value);
}

std::string grid_html(const TrainGrid& grid) {
  bool busy = false;
  for (const auto& [threads, row] : grid.at)
    for (const auto& [prefetch, record] : row)
      busy |= metric_value(*record, "accelerator_utilization").has_value();
  std::vector<HtmlTable::Column> columns{{"threads", Kind::number, "that read and decode"}};
  for (const std::uint64_t prefetch : grid.prefetches)
    columns.push_back(
        {fmt::format("prefetch {}", prefetch), Kind::number, "batches that may be ready ahead"});
  HtmlTable table(grid.title + (busy ? ": how busy the accelerator was" : ": samples/s"), columns);
  for (const auto& [threads, row] : grid.at) {
    std::vector<std::string> cells{std::to_string(threads)};
    for (const std::uint64_t prefetch : grid.prefetches) {
      const auto at = row.find(prefetch);
      cells.push_back(at == row.end() ? "-" : grid_cell(*at->second, busy));
    }
    table.row(cells);
  }
  return table.html();
}

}  // namespace

std::string train_section(const std::vector<Record>& records, PageState& state) {
  const std::vector<TrainGroup> groups = train_groups(records);
  if (groups.empty()) return "";
  std::string out = state.open_section("training", "Training",
                                       "A pipeline reads, decodes and batches real samples while an "
                                       "accelerator steps at fixed deadlines. Prefetching "
                                       "lets the next batches form while a step runs. A stage is busy, "
                                       "starved by the stage before it, or blocked by the "
                                       "queue behind it; the times are summed over its threads.");
  for (const TrainGrid& grid : train_grids(records)) out += grid_html(grid);
  for (const TrainGroup& group : groups) {
    out += "<h3>" + escape(group.title) + "</h3>\n<div class=\"beside\">\n" + prefetch_bars(group) +
           prefetch_table(group, state).html() + "</div>\n" + stages_html(group) +
           timeline_html(group, state);
  }
  return out + "</section>\n";
}

}  // namespace penstock::report
