#include "miniapps/train/stage_times.hpp"

#include <algorithm>
#include <array>
#include <string_view>

#include "io_backends/core/cli/table.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "results/cells/cells.hpp"

namespace penstock {

std::vector<StageTally> stage_times(const Record& record) {
  const std::string busy_prefix = train_metrics::kStageBusy.with("");
  constexpr std::array<std::string_view, 11> kStages{"list",   "open",        "read",      "decode",
                                                     "resize", "transpose",   "normalise", "transform",
                                                     "batch",  "accelerator", "checkpoint"};
  const auto pos = [&](const std::string& stage) { return std::find(kStages.begin(), kStages.end(), stage); };
  std::vector<StageTally> stages;
  for (const auto& [name, metric] : record.metrics) {
    if (!name.starts_with(busy_prefix)) continue;
    const std::string stage = name.substr(busy_prefix.size());
    stages.push_back({stage, metric_value(record, name).value_or(0),
                      metric_value(record, train_metrics::kStageStarved.with(stage)).value_or(0),
                      metric_value(record, train_metrics::kStageBlocked.with(stage)).value_or(0)});
  }
  std::stable_sort(stages.begin(), stages.end(),
                   [&](const StageTally& a, const StageTally& b) { return pos(a.stage) < pos(b.stage); });
  return stages;
}

double busy_share(const Record& record, const StageTally& stage) {
  double threads_s = stage.total_s();
  if (stage.stage != "accelerator" && stage.stage != "checkpoint")
    threads_s = std::max(threads_s, metric_value(record, shared_metrics::kWall).value_or(0) *
                                        parameter_number(record, "threads").value_or(0) *
                                        parameter_number(record, "ranks").value_or(1));
  return threads_s > 0 ? stage.busy_s / threads_s : 0;
}

std::string busy_share_text(const Record& record, const StageTally& stage) {
  return stage.stage == "accelerator" || stage.total_s() <= 0 ? "-"
                                                              : format_percent(busy_share(record, stage));
}

}  // namespace penstock
