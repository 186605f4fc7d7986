#include "miniapps/train/step_checkpoints.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/ack_log.hpp"
#include "miniapps/checkpoint/saving_record.hpp"
#include "miniapps/train/train_metrics.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kSignalPoll{200};  // how often drain() tests for signals

// The intervals of the steps. The time of observers between two steps belongs to none.
std::vector<Period> step_periods(const TrainingRun& run, double offset_s) {
  std::vector<Period> all;
  std::int64_t may_begin_ns = 0;
  for (const StepTimes& step : run.steps) {
    const double begin_s = static_cast<double>(may_begin_ns + step.observer_ns) * 1e-9;
    all.push_back({offset_s + begin_s, offset_s + static_cast<double>(step.next_may_begin_ns) * 1e-9});
    may_begin_ns = step.next_may_begin_ns;
  }
  return all;
}

}  // namespace

StepCheckpoints::StepCheckpoints(const StepSaving& saving, std::uint64_t made, const TrainerState& at,
                                 Communicator& ranks)
    : saving_(saving), ranks_(ranks), made_(made), at_(at) {}

Result<std::unique_ptr<StepCheckpoints>> StepCheckpoints::open(const StepSaving& saving, std::uint64_t made,
                                                               const TrainerState& at, Communicator& ranks) {
  std::unique_ptr<StepCheckpoints> opened(new StepCheckpoints(saving, made, at, ranks));
  StepCheckpoints& self = *opened;
  Checkpointer::Acknowledged acknowledged;
  const auto prepare = [&]() -> Result<void> {
    const auto rank = static_cast<std::uint64_t>(ranks.rank());
    PENSTOCK_ASSIGN(self.state_,
                    PayloadState::make(saving.payload.shard(rank, static_cast<std::uint64_t>(ranks.size())),
                                       rank, at.seed));
    if (saving.ack_log.empty() || !ranks.root()) return success();
    PENSTOCK_ASSIGN(acknowledged, log_acknowledgements(saving.ack_log));
    return success();
  };
  PENSTOCK_TRY(all_ok(ranks, prepare()));
  PENSTOCK_ASSIGN(self.saver_,
                  Checkpointer::open(saving.policy, saving.slow, saving.fast ? &*saving.fast : nullptr, ranks,
                                     acknowledged));
  return opened;
}

Result<bool> StepCheckpoints::after_step(std::uint64_t /*step*/, const Batch& batch) {
  if (batch.epoch != at_.epoch) {
    at_.epoch = batch.epoch;
    at_.step_of_epoch = at_.consumed = 0;
  }
  ++at_.step_of_epoch;
  at_.consumed += batch.samples() * static_cast<std::uint64_t>(ranks_.size());
  return true;
}

Result<void> StepCheckpoints::do_collective_work(std::uint64_t steps) {
  const std::uint64_t step = made_ + steps;
  state_->advance_to(step);
  SaveRequest request{.step = step,
                      .files = {},
                      .trainer = at_,
                      .payload = saving_.payload.name,
                      .payload_seed = state_->seed()};
  for (std::size_t i = 0; i < state_->files().size(); ++i)
    request.files.push_back({.name = state_->files()[i].name, .bytes = state_->file(i)});
  const Result<CheckpointTimes> saved = saver_->save(request);
  if (saved.ok()) return success();
  Error error = saved.error();
  error.what = "the checkpoint of step " + std::to_string(step) + " failed: " + error.what;
  return error;
}

// Success if drain() may wait longer; otherwise `left`, the last result of the Checkpointer.
Result<void> StepCheckpoints::may_wait(const Result<void>& left) {
  const SteadyTime now = Clock::now();
  // After a failed drain, new bytes are not progress: it writes all bytes again.
  const CheckpointCounts counts = saver_->counts();
  const std::uint64_t written = saving_.slow.backend->moved_bytes().written;
  if (counts.drained != drained_ || (written != written_ && counts.drain_failures == failures_))
    last_progress_ = now;
  if (counts.drained != drained_) failures_ = counts.drain_failures;
  drained_ = counts.drained;
  written_ = written;
  if (interrupted() && !stopped_) stopped_ = now;
  const bool over =
      stopped_ ? now - *stopped_ >= saving_.grace : now - last_progress_ >= saving_.policy.block_for;
  return over ? left : success();
}

Result<void> StepCheckpoints::drain() {
  const SteadyTime since = Clock::now();
  last_progress_ = since;
  drained_ = saver_->counts().drained;
  failures_ = saver_->counts().drain_failures;
  Result<void> left = success();
  while (true) {
    const bool must_not_wait = interrupted() && saving_.grace.count() == 0;
    left =
        saver_->finalize(must_not_wait ? std::chrono::nanoseconds(0) : std::chrono::nanoseconds(kSignalPoll));
    if (left.ok() || left.error().code != Errc::timed_out) break;
    if (!on_root(ranks_, [&] { return may_wait(left); }).ok()) break;
  }
  drained_s_ = std::chrono::duration<double>(Clock::now() - since).count();
  return left;
}

Result<void> StepCheckpoints::drain_or_leave() {
  Result<void> drained = drain();
  if (drained.ok() || drained.error().code != Errc::timed_out || !interrupted()) return drained;
  warn(drained.error().message());
  return success();
}

void StepCheckpoints::record(const TrainingRun& run, SteadyTime start, bool steps_are_work,
                             Trial& trial) const {
  trial.tier("checkpoint", saving_.slow);
  if (saving_.fast) trial.tier("burst_buffer", *saving_.fast);
  if (!ranks_.root()) return;
  const double offset_s =
      saver_->now_s() - std::chrono::duration<double>(Clock::now() - start).count();  // start of the run
  std::vector<CheckpointTimes> times = saver_->times();
  for (CheckpointTimes& one : times) {
    one.asked_s -= offset_s;
    if (one.drain_begin_s) *one.drain_begin_s -= offset_s;
  }
  const std::vector<Period> steps = step_periods(run, 0);
  SavingFacts facts{.checkpoints = times, .counts = saver_->counts(), .steps = steps};
  facts.wall_s = steps.empty() ? 0 : steps.back().end_s;
  facts.steps_are_work = steps_are_work;
  facts.mtbf_s = std::chrono::duration<double>(saving_.mtbf).count();
  facts.fast_tier = saving_.fast.has_value();
  facts.fast_is_volatile =
      saving_.fast && (saving_.fast->facts.memory || saving_.fast->backend->caps().volatile_memory);
  facts.durable = train_metrics::kDurable;
  record_saving(facts, trial);
  trial.sample(train_metrics::kFinalize, drained_s_);
}

}  // namespace penstock
