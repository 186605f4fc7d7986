#include "miniapps/pipeline/training.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

double seconds(std::int64_t ns) {
  return static_cast<double>(ns) * 1e-9;
}

// AU of one epoch as DLIO calculates it. Needs at least one step.
double dlio_epoch(std::span<const StepTimes> steps) {
  std::int64_t computing = 0;
  std::int64_t wall = steps.back().end_ns - steps.front().end_ns;
  for (const StepTimes& step : steps.subspan(1)) {
    computing += step.end_ns - step.handed_ns;
    wall -= step.aside_ns;
  }
  return wall > 0 ? static_cast<double>(computing) / static_cast<double>(wall) : 0.0;
}

double dlio_utilization(std::span<const StepTimes> steps) {
  double sum = 0;
  double epochs = 0;
  while (!steps.empty()) {
    const auto next = std::find_if(steps.begin(), steps.end(),
                                   [&](const StepTimes& step) { return step.epoch != steps.front().epoch; });
    const auto count = static_cast<std::size_t>(next - steps.begin());
    sum += dlio_epoch(steps.first(count));
    epochs += 1;
    steps = steps.subspan(count);
  }
  return sum / epochs;
}

double median_overshoot(std::span<const StepTimes> steps) {
  std::vector<double> overshoots;
  overshoots.reserve(steps.size());
  for (const StepTimes& step : steps)
    overshoots.push_back(static_cast<double>(step.end_ns - step.begin_ns - step.nominal_ns) /
                         static_cast<double>(step.nominal_ns));
  return median(overshoots);
}

class NoAccelerator final : public Accelerator {
 public:
  std::chrono::nanoseconds nominal_step() const override { return std::chrono::nanoseconds{0}; }
  Result<Step> step(const Batch&) override {
    PENSTOCK_TRY(check_interrupt());
    const SteadyTime now = std::chrono::steady_clock::now();
    return Step{now, now, now};
  }
  void over(SteadyTime) override {}
};

class Loop {
 public:
  Loop(BatchSource& input, Accelerator& accelerator, SteadyTime start,
       std::span<StepObserver* const> observers, StepBarrier* together)
      : input_(input), accelerator_(accelerator), start_(start), observers_(observers), together_(together) {}

  TrainingRun run() {
    Result<bool> more = true;
    while (more.ok() && *more) more = step();
    if (together_ != nullptr && !others_know_) {
      const Result<StepBarrier::Over> left = together_->arrive(false);
      if (more.ok() && !left.ok()) more = left.error();
    }
    if (!more.ok()) run_.failure = std::move(more).error();
    return std::move(run_);
  }

 private:
  // By the training loop's thread, as all functions here. Makes one step. True: there may be another one.
  Result<bool> step();
  Result<bool> end_together(StepTimes& times);
  Result<std::int64_t> before_step(const Batch* next);
  Result<bool> after_step(const Batch& batch);
  Result<bool> hold();
  std::int64_t since_start(SteadyTime time) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - start_).count();
  }

  BatchSource& input_;
  Accelerator& accelerator_;
  const SteadyTime start_;
  const std::span<StepObserver* const> observers_;
  StepBarrier* const together_;
  std::int64_t collective_ns_ = 0;  // time in hold() since the last step
  bool others_know_ = false;        // the other ranks know that this rank makes no further step
  TrainingRun run_;
};

Result<bool> Loop::step() {
  PENSTOCK_ASSIGN(const Batch* const batch, input_.next());
  PENSTOCK_ASSIGN(const std::int64_t aside_ns, before_step(batch));
  if (batch == nullptr) {
    run_.aside_after_ns = collective_ns_ + aside_ns;
    return false;
  }
  const SteadyTime handed = std::chrono::steady_clock::now();
  PENSTOCK_ASSIGN(const Step step, accelerator_.step(*batch));
  StepTimes times{
      .epoch = batch->epoch,
      .payload_bytes = std::accumulate(batch->length.begin(), batch->length.end(), std::uint64_t{0}),
      .handed_ns = since_start(handed),
      .begin_ns = since_start(step.begin),
      .deadline_ns = since_start(step.deadline),
      .end_ns = since_start(step.end),
      .nominal_ns = step.nominal.count(),
      .busy_ns = step.busy.count(),
      .over_ns = since_start(step.deadline),
      .aside_ns = collective_ns_ + aside_ns,
      .collective_ns = collective_ns_};
  if (together_ != nullptr) {
    PENSTOCK_ASSIGN(const bool by_all, end_together(times));
    if (!by_all) {  // the input of another rank has ended, which ends the run for all ranks
      PENSTOCK_ASSIGN(const std::int64_t after_ns, before_step(nullptr));
      run_.aside_after_ns = collective_ns_ + after_ns;
      return false;
    }
  }
  collective_ns_ = 0;
  run_.batch = batch->samples();
  run_.steps.push_back(times);
  PENSTOCK_ASSIGN(const bool more, after_step(*batch));
  if (!more) return false;
  return hold();
}

// Every observer gets the step, even if an earlier one has enough.
Result<bool> Loop::after_step(const Batch& batch) {
  bool more = true;
  for (StepObserver* const observer : observers_) {
    PENSTOCK_ASSIGN(const bool goes_on, observer->after_step(run_.steps.size() - 1, batch));
    more = more && goes_on;
  }
  return more;
}

// Collective if an observer is due. It first waits for all ranks: a rank that has failed would make the
// others wait for ever in hold(). False: the run ends.
Result<bool> Loop::hold() {
  const std::uint64_t steps = run_.steps.size();
  const auto is_due = [steps](const StepObserver* observer) { return observer->due(steps); };
  if (std::none_of(observers_.begin(), observers_.end(), is_due)) return true;
  const SteadyTime since = std::chrono::steady_clock::now();
  if (together_ != nullptr) {
    const Result<StepBarrier::Over> all = together_->arrive(true);
    others_know_ = !all.ok() || !all->for_all;
    if (!all.ok()) return all.error();
    if (!all->for_all) return false;
  }
  for (StepObserver* const observer : observers_)
    if (is_due(observer)) PENSTOCK_TRY(observer->hold(steps));
  const SteadyTime over = std::chrono::steady_clock::now();
  accelerator_.over(over);
  collective_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(over - since).count();
  return true;
}

// Returns the time that the observers took, 0 if none did anything. The next step begins no earlier than
// their end.
Result<std::int64_t> Loop::before_step(const Batch* next) {
  const SteadyTime since = std::chrono::steady_clock::now();
  bool did = false;
  for (StepObserver* const observer : observers_) {
    PENSTOCK_ASSIGN(const bool took_time, observer->before_step(run_.steps.size(), next));
    did = did || took_time;
  }
  if (!did) return 0;
  const SteadyTime over = std::chrono::steady_clock::now();
  accelerator_.over(over);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(over - since).count();
}

// Collective: waits for all ranks at the end of a step. False: one of them did not make it.
Result<bool> Loop::end_together(StepTimes& times) {
  const Result<StepBarrier::Over> over = together_->arrive(true);
  others_know_ = !over.ok() || !over->for_all;
  if (!over.ok()) return over.error();
  if (!over->for_all) return false;
  accelerator_.over(over->at);
  times.over_ns = since_start(over->at);
  times.straggler_ns = over->straggler.count();
  times.barrier_ns = over->barrier.count();
  if (over->last) ++run_.last;
  return true;
}

}  // namespace

std::unique_ptr<Accelerator> no_accelerator() {
  return std::make_unique<NoAccelerator>();
}

Result<SteadyTime> StepBarrier::begin() {
  PENSTOCK_TRY(ranks_.barrier());
  together_ = std::chrono::steady_clock::now();
  return together_;
}

Result<StepBarrier::Over> StepBarrier::arrive(bool made) {
  const SteadyTime came = std::chrono::steady_clock::now();
  const double since = std::chrono::duration<double, std::nano>(came - together_).count();
  std::array<double, 2> most{since, made ? 0.0 : 1.0};
  PENSTOCK_TRY(ranks_.all_reduce(std::span<double>(most), Reduction::max));
  Over over;
  over.at = together_ = std::chrono::steady_clock::now();
  const std::chrono::nanoseconds waited = over.at - came;
  over.for_all = most[1] == 0.0;
  over.straggler = std::min(waited, std::chrono::nanoseconds(static_cast<std::int64_t>(most[0] - since)));
  over.barrier = waited - over.straggler;
  over.last = most[0] == since;
  return over;
}

TrainingRun run_training(BatchSource& input, Accelerator& accelerator, SteadyTime start,
                         std::span<StepObserver* const> observers, StepBarrier* together) {
  return Loop(input, accelerator, start, observers, together).run();
}

TrainingFigures figures(const TrainingRun& run, std::chrono::nanoseconds nominal_step) {
  TrainingFigures result;
  if (run.steps.empty()) return result;
  const StepTimes& first = run.steps.front();
  const StepTimes& last = run.steps.back();
  result.wall_s = seconds(std::max(last.end_ns, last.over_ns) + run.aside_after_ns);
  result.first_batch_s = seconds(first.handed_ns);
  std::int64_t waited = 0;
  std::int64_t free = 0;
  std::int64_t computed = 0;
  std::int64_t straggled = 0;
  std::int64_t aside = 0;
  for (const StepTimes& step : run.steps) {
    waited += step.begin_ns - free - step.aside_ns;
    aside += step.aside_ns;
    free = step.over_ns;
    computed += step.busy_ns;
    straggled += step.straggler_ns;
    result.payload_bytes += static_cast<double>(step.payload_bytes);
  }
  result.input_wait_s = seconds(waited);
  result.straggler_s = seconds(straggled);
  result.barrier_s = seconds(free - waited - computed - straggled - aside);
  result.aside_s = seconds(aside + run.aside_after_ns);
  result.samples = static_cast<double>(run.steps.size()) * static_cast<double>(run.batch);
  if (nominal_step.count() > 0) result.step_overshoot = median_overshoot(run.steps);
  if (computed == 0 || run.steps.size() < 2) return result;
  result.utilization =
      static_cast<double>(computed - first.busy_ns) /
      static_cast<double>(last.end_ns - std::min(first.deadline_ns, first.end_ns) - aside + first.aside_ns);
  result.utilization_dlio = dlio_utilization(run.steps);
  return result;
}

double input_overlap(double input_wait_s, double input_alone_s) {
  return input_alone_s > 0 ? 1.0 - input_wait_s / input_alone_s : 0.0;
}

double input_alone_s(const TrainingRun& alone, std::uint64_t steps) {
  if (alone.steps.empty()) return 0;
  const double first = seconds(alone.steps.front().end_ns);
  if (alone.steps.size() < 2) return first;
  const double pace =
      (seconds(alone.steps.back().end_ns) - first) / static_cast<double>(alone.steps.size() - 1);
  return first + pace * static_cast<double>(steps - 1);
}

}  // namespace penstock
