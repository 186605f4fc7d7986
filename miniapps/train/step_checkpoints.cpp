#include "miniapps/train/step_checkpoints.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/ack_log.hpp"
#include "miniapps/checkpoint/saving_record.hpp"
#include "miniapps/train/train_metrics.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSignalPoll{200};  // how often drain() tests for signals

// Returns when each step began and ended. The work of observers between two steps is not part of a step.
std::vector<Period> step_periods(const TrainingRun& run, double offset_s) {
  std::vector<Period> periods;
  int64_t may_begin_ns = 0;
  for (const StepTimes& step : run.steps) {
    const double begin_s = double(may_begin_ns + step.observer_ns) * 1e-9;
    periods.push_back({offset_s + begin_s, offset_s + double(step.next_may_begin_ns) * 1e-9});
    may_begin_ns = step.next_may_begin_ns;
  }
  return periods;
}

}  // namespace

StepCheckpoints::StepCheckpoints(const StepSaving& saving, uint64_t steps_before,
                                 const TrainerState& end_state, Communicator& ranks)
    : saving_(saving), ranks_(ranks), steps_before_(steps_before), trainer_state_(end_state) {}

Result<std::unique_ptr<StepCheckpoints>> StepCheckpoints::open(const StepSaving& saving,
                                                               uint64_t steps_before,
                                                               const TrainerState& end_state,
                                                               Communicator& ranks) {
  std::unique_ptr<StepCheckpoints> opened(new StepCheckpoints(saving, steps_before, end_state, ranks));
  StepCheckpoints& self = *opened;
  Checkpointer::OnReached on_reached;
  const auto prepare = [&]() -> Result<void> {
    const auto rank = uint64_t(ranks.rank());
    PENSTOCK_ASSIGN(self.state_, PayloadState::make(saving.payload.shard(rank, uint64_t(ranks.size())), rank,
                                                    end_state.seed));
    if (saving.ack_log.empty() || !ranks.root()) return success();
    PENSTOCK_ASSIGN(on_reached, log_acknowledgements(saving.ack_log));
    return success();
  };
  PENSTOCK_TRY(all_ok(ranks, prepare()));
  PENSTOCK_ASSIGN(self.saver_, Checkpointer::open(saving.policy, saving.slow,
                                                  saving.fast ? &*saving.fast : nullptr, ranks, on_reached));
  return opened;
}

Result<bool> StepCheckpoints::after_step(uint64_t /*step*/, const Batch& batch) {
  if (batch.epoch != trainer_state_.epoch) {
    trainer_state_.epoch = batch.epoch;
    trainer_state_.step_of_epoch = trainer_state_.consumed = 0;
  }
  ++trainer_state_.step_of_epoch;
  trainer_state_.consumed += batch.samples() * uint64_t(ranks_.size());
  return true;
}

Result<void> StepCheckpoints::do_collective_work(uint64_t steps) {
  const uint64_t step = steps_before_ + steps;
  state_->advance_to(step);
  SaveRequest request{.step = step,
                      .files = {},
                      .trainer = trainer_state_,
                      .payload = saving_.payload.name,
                      .payload_seed = state_->seed()};
  for (size_t i = 0; i < state_->files().size(); ++i)
    request.files.push_back({.name = state_->files()[i].name, .bytes = state_->file(i)});
  const Result<CheckpointTimes> saved = saver_->save(request);
  if (saved.ok()) return success();
  Error error = saved.error();
  error.what = "the checkpoint of step " + std::to_string(step) + " failed: " + error.what;
  return error;
}

// Returns success if drain() may wait longer. Otherwise returns `last_result`, which is what the last call of
// Checkpointer::finalize() returned.
Result<void> StepCheckpoints::may_wait(DrainProgress& progress, const Result<void>& last_result) {
  const SteadyTime now = Clock::now();
  const std::chrono::nanoseconds stalled_for = progress.stalled_for();
  if (interrupted() && !signal_seen_at_) signal_seen_at_ = now;
  const bool must_stop =
      signal_seen_at_ ? now - *signal_seen_at_ >= saving_.grace : stalled_for >= saving_.policy.block_for;
  return must_stop ? last_result : success();
}

Result<void> StepCheckpoints::drain() {
  const SteadyTime since = Clock::now();
  DrainProgress progress(*saver_, saving_.slow, saving_.fast ? &*saving_.fast : nullptr);
  Result<void> last_result = success();
  while (true) {
    const bool must_not_wait = interrupted() && saving_.grace.count() == 0;
    last_result =
        saver_->finalize(must_not_wait ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(kSignalPoll));
    if (last_result.ok() || last_result.error().code != Errc::timed_out) break;
    if (!on_root(ranks_, [&] { return may_wait(progress, last_result); }).ok()) break;
  }
  drain_time_s_ = std::chrono::duration<double>(Clock::now() - since).count();
  if (last_result.ok() || last_result.error().code != Errc::timed_out || !saving_.fast) return last_result;
  Error error = last_result.error();
  error.what += "; to continue: " + drain_command(*saving_.fast, saving_.slow, saving_.policy.run);
  return error;
}

Result<void> StepCheckpoints::drain_or_leave() {
  Result<void> drained = drain();
  if (drained.ok() || drained.error().code != Errc::timed_out || !interrupted()) return drained;
  if (saving_.policy.log) saving_.policy.log(drained.error().message());
  return success();
}

void StepCheckpoints::record(const TrainingRun& run, SteadyTime start, bool steps_are_work,
                             Trial& trial) const {
  trial.tier("checkpoint", saving_.slow);
  if (saving_.fast) trial.tier("burst_buffer", *saving_.fast);
  if (!ranks_.root()) return;
  const double run_start_s =
      // When run_training() began, on the clock of saver_.
      saver_->now_s() - std::chrono::duration<double>(Clock::now() - start).count();
  std::vector<CheckpointTimes> times = saver_->times();
  for (CheckpointTimes& one : times) {
    one.save_begin_s -= run_start_s;
    if (one.drain_begin_s) *one.drain_begin_s -= run_start_s;
  }
  const std::vector<Period> steps = step_periods(run, 0);
  SavingFacts facts{.checkpoints = times, .counts = saver_->counts(), .steps = steps};
  facts.wall_s = steps.empty() ? 0 : steps.back().end_s;
  if (saving_.resumed && !steps.empty())
    facts.unsaved_on_slow_s =
        double(saving_.resumed->unsaved_on_slow_steps) * facts.wall_s / double(steps.size());
  facts.steps_are_work = steps_are_work;
  facts.mtbf_s = std::chrono::duration<double>(saving_.mtbf).count();
  facts.has_fast_tier = saving_.fast.has_value();
  facts.fast_is_volatile =
      saving_.fast && (saving_.fast->facts.memory || saving_.fast->backend->caps().volatile_memory);
  facts.time_to_durable = train_metrics::kTimeToDurable;
  record_saving(facts, trial);
  trial.sample(train_metrics::kFinalize, drain_time_s_);
}

}  // namespace penstock
