#include "miniapps/train/saving_record.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "results/statistics.hpp"

namespace penstock {
namespace {

std::vector<CheckpointTimes> saved(std::span<const CheckpointTimes> all) {
  std::vector<CheckpointTimes> those;
  std::copy_if(all.begin(), all.end(), std::back_inserter(those),
               [](const CheckpointTimes& one) { return !one.skipped; });
  return those;
}

void record_each(const CheckpointTimes& one, Trial& trial) {
  const auto bytes = static_cast<double>(one.bytes);
  trial.sample("checkpoint_bytes", "B", Better::neither, "checkpoint", bytes);
  trial.sample("checkpoint_block_s", "s", Better::lower, "checkpoint", one.block_s);
  if (one.fast_s) trial.sample("checkpoint_fast_s", "s", Better::lower, "checkpoint", *one.fast_s);
  if (one.durable_s) trial.sample("checkpoint_durable_s", "s", Better::lower, "checkpoint", *one.durable_s);
  if (one.drain_s && *one.drain_s > 0)
    trial.sample("drain_bytes_per_s", "B/s", Better::higher, "checkpoint", bytes / *one.drain_s);
  if (one.fast_s && one.durable_s && *one.durable_s > *one.fast_s)
    trial.sample("drain_queued_bytes_per_s", "B/s", Better::higher, "checkpoint",
                 bytes / (*one.durable_s - *one.fast_s));
}

void record_counts(const CheckpointCounts& counts, Trial& trial) {
  const std::pair<const char*, std::uint64_t> all[] = {
      {"checkpoint_skips", counts.skips},
      {"checkpoints_written_through", counts.written_through},
      {"checkpoints_drained", counts.drained},
      {"drain_failures", counts.drain_failures},
      {"checkpoints_evicted", counts.evicted},
      {"checkpoints_pruned", counts.pruned},
      {"checkpoints_quarantined", counts.quarantined}};
  trial.value("checkpoints", "1", Better::neither, static_cast<double>(counts.saves));
  for (const auto& [name, count] : all) {
    const std::string_view word = name;
    const bool bad = word.ends_with("skips") || word.ends_with("failures") || word.ends_with("quarantined");
    trial.value(word, "1", bad ? Better::lower : Better::neither, static_cast<double>(count));
  }
  trial.value("backlog_most_bytes", "B", Better::lower, static_cast<double>(counts.backlog_most));
}

void record_losses(const SavingFacts& facts, Trial& trial) {
  const std::pair<const char*, Failure> kinds[] = {
      {"process", Failure::process}, {"node", Failure::node}, {"power", Failure::power}};
  for (const auto& [name, failure] : kinds) {
    const LostWork lost = lost_work(facts.checkpoints, facts.wall_s, failure, facts.fast_is_volatile);
    trial.value("lost_work_s." + std::string(name), "s", Better::lower, lost.mean_s);
    trial.value("lost_work_most_s." + std::string(name), "s", Better::lower, lost.most_s);
  }
}

}  // namespace

Result<void> check_mtbf(std::chrono::nanoseconds mtbf) {
  if (mtbf.count() > 0) return success();
  return make_error(Errc::invalid_argument,
                    "--mtbf 0 leaves no time between two failures: say how long it is, such as 24h");
}

void record_saving(const SavingFacts& facts, Trial& trial) {
  record_counts(facts.counts, trial);
  const std::vector<CheckpointTimes> all = saved(facts.checkpoints);
  std::vector<double> blocked;
  for (const CheckpointTimes& one : all) {
    record_each(one, trial);
    blocked.push_back(one.block_s);
    const std::optional<double> ceiling = facts.fast_tier ? facts.fast_ceiling : facts.slow_ceiling;
    if (ceiling && one.bytes > 0 && !facts.snapshot)
      trial.sample("block_of_ceiling", "1", Better::lower, "checkpoint",
                   one.block_s * *ceiling / static_cast<double>(one.bytes));
    if (facts.slow_ceiling && one.drain_s && *one.drain_s > 0)
      trial.sample("drain_of_ceiling", "1", Better::higher, "checkpoint",
                   static_cast<double>(one.bytes) / *one.drain_s / *facts.slow_ceiling);
  }
  if (const auto overlap = drain_overlap(all)) trial.value("drain_overlap", "1", Better::higher, *overlap);
  if (const auto inflation = step_inflation(facts.steps, all); inflation && facts.steps_are_work)
    trial.value("step_inflation", "1", Better::lower, *inflation);
  if (facts.wall_s > 0) record_losses(facts, trial);
  if (blocked.empty() || facts.mtbf_s <= 0) return;
  const double cost_s = median(blocked);
  trial.value("checkpoint_interval_s.young", "s", Better::neither, young_interval_s(cost_s, facts.mtbf_s));
  trial.value("checkpoint_interval_s.daly", "s", Better::neither, daly_interval_s(cost_s, facts.mtbf_s));
}

}  // namespace penstock
