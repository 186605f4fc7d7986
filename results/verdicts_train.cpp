// What train records say: what prefetching hid, how busy the accelerator was, which stage limits.
#include <fmt/format.h>

#include <algorithm>

#include "results/table.hpp"
#include "results/verdicts_parts.hpp"

namespace penstock::verdicts {
namespace {

void say_prefetch(const TrainGroup& group, std::vector<Sentence>& out) {
  const auto none = group.at.find(0);
  const auto without = none == group.at.end() ? std::nullopt : input_wait_per_step(*none->second);
  for (const auto& [prefetch, record] : group.at) {
    if (prefetch == 0) continue;
    const auto with = input_wait_per_step(*record);
    if (const auto hidden = hidden_by_prefetch(group, prefetch)) {
      const std::string waited =
          fmt::format("{}, {} ahead: the accelerator waited {} a step instead of {}", group.title,
                      prefetch == 1 ? "1 batch" : fmt::format("{} batches", prefetch), format_seconds(*with),
                      format_seconds(*without));
      out.push_back({Tone::finding, "prefetch",
                     *hidden >= 0 ? fmt::format("Prefetching took away {} of the waiting ({}).",
                                                format_percent(*hidden), waited)
                                  : fmt::format("Prefetching took away none of the waiting ({}).", waited)});
    } else if (const auto overlap = metric_value(*record, "input_overlap"); overlap && *overlap >= 0) {
      out.push_back(
          {Tone::finding, "prefetch",
           fmt::format(
               "Prefetching hid {} of the input's own time behind the steps ({}, prefetch {}; its own "
               "time is that of the same pipeline without an accelerator).",
               format_percent(*overlap), group.title, prefetch)});
    }
  }
}

void say_utilization(const TrainGroup& group, std::vector<Sentence>& out) {
  std::vector<std::string> parts;
  for (const auto& [prefetch, record] : group.at)
    if (const auto busy = metric_value(*record, "accelerator_utilization"))
      parts.push_back(fmt::format("{}{} with prefetch {}", format_percent(*busy),
                                  parts.empty() ? " of the time" : "", prefetch));
  if (!parts.empty())
    out.push_back({Tone::finding, "utilization",
                   fmt::format("The accelerator of {} was busy {}.", group.title, enumerate(parts))});
}

// "lost_s.decode" -> what the accelerator lost to decoding, the most first.
std::vector<std::pair<double, std::string>> lost_parts(const Record& record) {
  constexpr std::string_view kLost = "lost_s.";
  std::vector<std::pair<double, std::string>> parts;
  for (const auto& [name, metric] : record.metrics)
    if (name.starts_with(kLost)) parts.emplace_back(metric_value(record, name).value_or(0), name.substr(kLost.size()));
  std::sort(parts.rbegin(), parts.rend());
  return parts;
}

// Where utilization went: only of accelerators that have a step, and only what is worth a word.
void say_lost(const TrainGroup& group, std::vector<Sentence>& out) {
  constexpr double kWorthAWord = 0.01;
  for (const auto& [prefetch, record] : group.at) {
    const auto wall = metric_value(*record, "wall_s");
    const auto waited = metric_value(*record, "input_wait_s");
    if (!metric_value(*record, "accelerator_utilization") || !wall || !waited || *wall <= 0) continue;
    std::vector<std::string> parts;
    for (const auto& [lost_s, to] : lost_parts(*record))
      if (lost_s >= kWorthAWord * *wall)
        parts.push_back(fmt::format("{} to {}", format_percent(lost_s / *wall), to));
    if (*waited < kWorthAWord * *wall || parts.empty()) continue;
    out.push_back({Tone::finding, "lost",
                   fmt::format("With prefetch {}, the accelerator of {} lost {} of its time: {}.", prefetch,
                               group.title, format_percent(*waited / *wall), enumerate(parts))});
  }
}

// The stage that was busy most is what the others wait for, if it was busy more than half of the time.
void say_bottleneck(const TrainGroup& group, std::vector<Sentence>& out) {
  if (group.at.empty()) return;
  const auto& [prefetch, record] = *group.at.rbegin();
  const std::vector<StageTimes> stages = stage_times(*record);
  if (prefetch == 0 || stages.size() < 2) return;
  const auto share = [](const StageTimes& stage) {
    return stage.total_s() > 0 ? stage.busy_s / stage.total_s() : 0;
  };
  const auto most = std::max_element(stages.begin(), stages.end(),
                                     [&](const auto& a, const auto& b) { return share(a) < share(b); });
  if (share(*most) <= 0.5) return;
  out.push_back(
      {Tone::finding, "bottleneck",
       most->stage == "accelerator"
           ? fmt::format("With prefetch {}, the accelerator is the bottleneck of {}.", prefetch, group.title)
           : fmt::format("With prefetch {}, {} is the bottleneck of {}: its threads were busy {} of "
                         "their time.",
                         prefetch, most->stage, group.title, format_percent(share(*most)))});
}

}  // namespace

void say_train(const std::vector<TrainGroup>& groups, std::vector<Sentence>& out) {
  for (const TrainGroup& group : groups) say_prefetch(group, out);
  for (const TrainGroup& group : groups) say_utilization(group, out);
  for (const TrainGroup& group : groups) say_lost(group, out);
  for (const TrainGroup& group : groups) say_bottleneck(group, out);
}

}  // namespace penstock::verdicts

namespace penstock {

std::optional<double> hidden_by_prefetch(const TrainGroup& group, std::uint64_t prefetch) {
  const auto none = group.at.find(0);
  const auto some = group.at.find(prefetch);
  if (prefetch == 0 || none == group.at.end() || some == group.at.end()) return std::nullopt;
  const auto without = input_wait_per_step(*none->second);
  const auto with = input_wait_per_step(*some->second);
  if (!without || !with || *without <= 0) return std::nullopt;
  return 1 - *with / *without;
}

}  // namespace penstock
