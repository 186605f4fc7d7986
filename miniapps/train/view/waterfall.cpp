#include "miniapps/train/view/waterfall.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/text.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/view/train_cells.hpp"
#include "miniapps/train/view/train_parts.hpp"
#include "results/cells/cells.hpp"

namespace penstock::report {
namespace {

using namespace train_metrics;
using namespace saving_metrics;

constexpr double kLeastShownShare = 0.0005;  // as a share of the wall time: smaller losses get no row

// The causes of lost time, in the order of the pipeline.
constexpr std::array<NamedText, 10> kLossCauses{{{"read", "opening and reading"},
                                                 {"decode", "decoding"},
                                                 {"resize", "resizing"},
                                                 {"transpose", "transposing"},
                                                 {"normalise", "normalising"},
                                                 {"transform", "transforming"},
                                                 {"collate", "the last samples of a batch"},
                                                 {"queue", "handing over"},
                                                 {"straggler", "other ranks at work"},
                                                 {"barrier", "meeting at the barrier"}}};

size_t cause_index(std::string_view name) {
  return size_t(std::find_if(kLossCauses.begin(), kLossCauses.end(),
                             [&](const NamedText& cause) { return cause.name == name; }) -
                kLossCauses.begin());
}

// The text for the cause `name` of lost time. With burn=, a step ends only when its work is done, and the
// time beyond its nominal time is recorded as lost at the "barrier". So this cause gets another text.
std::string loss_text(std::string_view name, const Record& record) {
  if (name == "barrier" && burns_processors(record))
    return several_accelerators(record) ? "meeting at the barrier, and longer steps"
                                        : "steps that lacked processors";
  const size_t index = cause_index(name);
  return std::string(index < kLossCauses.size() ? kLossCauses[index].text : name);
}

bool saves_checkpoints(const Record& record) {
  return find_metric(record, kModelSave) != nullptr || find_metric(record, kBlockTime) != nullptr;
}

// A bar of the length `length_s` with an empty space of the length `before_s` to its left. The full width is
// `wall_s`.
std::string bar(double before_s, double length_s, double wall_s, std::string_view kind) {
  return fmt::format(
      "<span class=\"fall\"><span class=\"before\" style=\"width:{:.3f}%\"></span><span class=\"segment {}\" "
      "style=\"width:{:.3f}%\"></span></span>",
      100 * std::clamp(before_s / wall_s, 0.0, 1.0), kind, 100 * std::clamp(length_s / wall_s, 0.0, 1.0));
}

}  // namespace

Waterfall waterfall_of(const Record& record) {
  Waterfall waterfall;
  waterfall.wall_s = metric_value(record, shared_metrics::kWall).value_or(0);
  const auto busy_s = metric_value(record, kStageBusy.with("accelerator"));
  if (waterfall.wall_s <= 0 || !busy_s || !metric_value(record, kUtilization)) return {};
  waterfall.computing_s = *busy_s / std::max(1.0, parameter_number(record, "ranks").value_or(1));
  waterfall.losses = verdicts::lost_parts(record);
  if (waterfall.losses.empty()) return {};
  std::stable_sort(
      waterfall.losses.begin(), waterfall.losses.end(),
      [](const LostTime& a, const LostTime& b) { return cause_index(a.cause) < cause_index(b.cause); });
  for (LostTime& loss : waterfall.losses) loss.cause = loss_text(loss.cause, record);
  waterfall.losses.push_back({"validating", metric_value(record, kValidation).value_or(0)});
  double rest_s = waterfall.wall_s - waterfall.computing_s;
  for (const LostTime& loss : waterfall.losses) rest_s -= loss.seconds;
  waterfall.losses.push_back({saves_checkpoints(record) ? "saving checkpoints" : "other", rest_s});
  std::erase_if(waterfall.losses,
                [&](const LostTime& loss) { return loss.seconds < kLeastShownShare * waterfall.wall_s; });
  return waterfall;
}

std::string waterfall_html(const std::string& title, const Record& record, PageState& state) {
  const Waterfall waterfall = waterfall_of(record);
  if (waterfall.losses.empty()) return "";
  HtmlTable table(title, {{"part", HtmlTable::Kind::words, ""},
                          {"time", HtmlTable::Kind::number, ""},
                          {"of the wall time", HtmlTable::Kind::number, ""},
                          {"from left to right: computed, lost", HtmlTable::Kind::words, ""}});
  std::vector<std::vector<std::string>> rows;
  const auto add = [&](const std::string& label, double seconds, double before_s, std::string_view kind) {
    table.row({text(label),
               text(format_seconds(seconds)),
               text(format_percent(seconds / waterfall.wall_s)),
               {bar(before_s, seconds, waterfall.wall_s, kind)}});
    rows.push_back({label, plain_number(seconds), plain_number(seconds / waterfall.wall_s)});
  };
  add("from the start to the end of the last step", waterfall.wall_s, 0, "whole");
  double left_s = waterfall.wall_s;
  for (const LostTime& loss : waterfall.losses) {
    left_s -= loss.seconds;
    add("- " + loss.cause, loss.seconds, left_s, "starved");
  }
  add("= the accelerator computed", waterfall.computing_s, 0, "busy");
  table.set_class_and_button(
      "waterfall", state.add_sheet(title, {"what", "seconds", "share of the wall"}, std::move(rows)));
  return table.html();
}

}  // namespace penstock::report
