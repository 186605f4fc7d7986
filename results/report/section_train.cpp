// Training: what prefetching hid and where each stage of the pipeline spent its time.
#include <fmt/format.h>

#include <algorithm>

#include "results/cells.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"
#include "results/table.hpp"
#include "results/verdicts.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;

struct Segment {
  std::string_view kind;  // a class of the page: "busy", "starved", "blocked"
  std::string_view words;
  double seconds = 0;
};
struct Bar {
  std::string label;
  std::vector<Segment> segments;
};

// Stacked bars as plain HTML: they need neither script nor library. All bars share one scale.
std::string bars_html(const std::string& caption, const std::vector<Bar>& bars) {
  double longest = 0;
  for (const Bar& bar : bars) {
    double total = 0;
    for (const Segment& segment : bar.segments) total += segment.seconds;
    longest = std::max(longest, total);
  }
  if (longest <= 0) return "";
  std::string out =
      "<figure class=\"bars\"><figcaption>" + escape(caption) + "</figcaption>\n<div class=\"legend\">";
  for (const Segment& segment : bars.front().segments)
    out += "<span class=\"key\"><i class=\"segment " + std::string(segment.kind) + "\"></i>" +
           escape(segment.words) + "</span>";
  out += "</div>\n";
  for (const Bar& bar : bars) {
    std::string what = bar.label + ":";
    std::string segments;
    for (const Segment& segment : bar.segments) {
      if (segment.seconds <= 0) continue;
      const std::string words = fmt::format(" {} {}", segment.words, format_seconds(segment.seconds));
      what += words;
      segments += fmt::format("<span class=\"segment {}\" style=\"width:{:.3f}%\" title=\"{}\"></span>",
                              segment.kind, 100 * segment.seconds / longest, escape(bar.label + words));
    }
    out += "<div class=\"bar\"><span class=\"bar-label\">" + escape(bar.label) +
           "</span><span class=\"track\" role=\"img\" aria-label=\"" + escape(what) + "\">" + segments +
           "</span></div>\n";
  }
  return out + "<div class=\"bar-scale\"><span>0</span><span>" + escape(format_seconds(longest)) +
         "</span></div></figure>\n";
}

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
  for (const TrainGroup& group : groups) {
    out += "<h3>" + escape(group.title) + "</h3>\n<div class=\"beside\">\n" + prefetch_bars(group) +
           prefetch_table(group, state).html() + "</div>\n" + stages_html(group);
  }
  return out + "</section>\n";
}

}  // namespace penstock::report
