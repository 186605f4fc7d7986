#include "miniapps/checkpoint/saving_record.hpp"

#include <algorithm>
#include <iterator>
#include <string_view>
#include <vector>

#include "miniapps/checkpoint/saving_metrics.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

std::vector<CheckpointTimes> not_skipped(std::span<const CheckpointTimes> all) {
  std::vector<CheckpointTimes> result;
  std::copy_if(all.begin(), all.end(), std::back_inserter(result),
               [](const CheckpointTimes& one) { return !one.skipped; });
  return result;
}

void record_checkpoint(const CheckpointTimes& one, const MetricInfo& time_to_durable, Trial& trial) {
  const auto bytes = double(one.bytes);
  trial.sample(saving_metrics::kBytes, bytes);
  trial.sample(saving_metrics::kBlockTime, one.block_s);
  if (one.fast_s) trial.sample(saving_metrics::kTimeToFast, *one.fast_s);
  if (one.durable_s) trial.sample(time_to_durable, *one.durable_s);
  if (one.drain_s && *one.drain_s > 0) trial.sample(saving_metrics::kDrainRate, bytes / *one.drain_s);
  if (one.fast_s && one.durable_s && *one.durable_s > *one.fast_s)
    trial.sample(saving_metrics::kQueuedDrainRate, bytes / (*one.durable_s - *one.fast_s));
}

void record_counts(const CheckpointCounts& counts, Trial& trial) {
  const auto count = [&](const MetricInfo& metric, uint64_t value) { trial.sample(metric, double(value)); };
  count(saving_metrics::kSaves, counts.saves);
  count(saving_metrics::kSkips, counts.skips);
  count(saving_metrics::kWrittenThrough, counts.written_through);
  count(saving_metrics::kDrained, counts.drained);
  count(saving_metrics::kDrainFailures, counts.drain_failures);
  count(saving_metrics::kEvicted, counts.evicted);
  count(saving_metrics::kPruned, counts.pruned);
  count(saving_metrics::kQuarantined, counts.quarantined);
  count(saving_metrics::kMostBacklog, counts.most_backlog_bytes);
}

void record_losses(const SavingFacts& facts, Trial& trial) {
  const auto record = [&](std::string_view name, Failure failure) {
    const bool loses_fast = failure == Failure::node || (failure == Failure::power && facts.fast_is_volatile);
    const LostWork lost = lost_work(facts.checkpoints, facts.wall_s, failure, facts.fast_is_volatile,
                                    loses_fast ? facts.unsaved_on_slow_s : 0);
    trial.sample(saving_metrics::kLostWork, name, lost.mean_s);
    trial.sample(saving_metrics::kMostLostWork, name, lost.most_s);
  };
  record("process", Failure::process);
  record("node", Failure::node);
  record("power", Failure::power);
}

}  // namespace

Result<void> check_mtbf(std::chrono::nanoseconds mtbf) {
  if (mtbf.count() > 0) return success();
  return make_error(Errc::invalid_argument, "--mtbf 0 is too short: pass a time above 0, such as 24h");
}

void record_saving(const SavingFacts& facts, Trial& trial) {
  record_counts(facts.counts, trial);
  const std::vector<CheckpointTimes> all = not_skipped(facts.checkpoints);
  std::vector<double> block_times;
  for (const CheckpointTimes& one : all) {
    record_checkpoint(one, facts.time_to_durable, trial);
    block_times.push_back(one.block_s);
    const std::optional<double> ceiling = facts.has_fast_tier ? facts.fast_ceiling : facts.slow_ceiling;
    if (ceiling && one.bytes > 0 && !facts.by_snapshot)
      trial.sample(saving_metrics::kBlockOfCeiling, one.block_s * *ceiling / double(one.bytes));
    if (facts.slow_ceiling && one.drain_s && *one.drain_s > 0)
      trial.sample(saving_metrics::kDrainOfCeiling, double(one.bytes) / *one.drain_s / *facts.slow_ceiling);
  }
  if (const auto overlap = drain_overlap(all)) trial.sample(saving_metrics::kDrainOverlap, *overlap);
  if (const auto inflation = step_inflation(facts.steps, all); inflation && facts.steps_are_work)
    trial.sample(saving_metrics::kStepInflation, *inflation);
  if (facts.wall_s > 0) record_losses(facts, trial);
  if (block_times.empty() || facts.mtbf_s <= 0) return;
  const double cost_s = median(block_times);
  trial.sample(saving_metrics::kIntervalYoung, young_interval_s(cost_s, facts.mtbf_s));
  trial.sample(saving_metrics::kIntervalDaly, daly_interval_s(cost_s, facts.mtbf_s));
}

}  // namespace penstock
