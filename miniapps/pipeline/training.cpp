#include "miniapps/pipeline/training.hpp"

#include <algorithm>
#include <array>
#include <numeric>
#include <utility>

#include "io_backends/core/system/interrupt.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

double seconds(int64_t ns) {
  return double(ns) * 1e-9;
}

// The accelerator utilization (AU) of these steps of one epoch as DLIO calculates it. `before_ns` is when the
// step before them ended.
double dlio_epoch_utilization(std::span<const StepTimes> steps, int64_t before_ns) {
  int64_t computing_ns = 0;
  int64_t wall_ns = steps.back().end_ns - before_ns;
  for (const StepTimes& step : steps) {
    computing_ns += step.end_ns - step.handed_ns;
    wall_ns -= step.observer_ns;
  }
  return wall_ns > 0 ? double(computing_ns) / double(wall_ns) : 0.0;
}

std::optional<double> dlio_utilization(std::span<const StepTimes> steps, const ExcludedSteps& excluded) {
  double sum = 0;
  double epochs = 0;
  int64_t before_ns = 0;  // when the step before the epoch ended
  while (!steps.empty()) {
    const auto next = std::find_if(steps.begin(), steps.end(),
                                   [&](const StepTimes& step) { return step.epoch != steps.front().epoch; });
    const std::span<const StepTimes> epoch = steps.first(size_t(next - steps.begin()));
    if (excluded.first < epoch.size() && excluded.last < epoch.size() - excluded.first) {
      const size_t first = excluded.first;
      if (first > 0) before_ns = epoch[first - 1].end_ns;
      sum += dlio_epoch_utilization(epoch.subspan(first, epoch.size() - first - excluded.last), before_ns);
      epochs += 1;
    }
    before_ns = epoch.back().end_ns;
    steps = steps.subspan(epoch.size());
  }
  if (epochs == 0) return std::nullopt;
  return sum / epochs;
}

double median_overshoot(std::span<const StepTimes> steps) {
  std::vector<double> overshoots;
  overshoots.reserve(steps.size());
  for (const StepTimes& step : steps)
    overshoots.push_back(double(step.end_ns - step.begin_ns - step.nominal_ns) / double(step.nominal_ns));
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
  void set_step_end(SteadyTime) override {}
};

class Loop {
 public:
  Loop(BatchSource& input, Accelerator& accelerator, SteadyTime start,
       std::span<StepObserver* const> observers, Communicator* ranks)
      : input_(input),
        accelerator_(accelerator),
        start_(start),
        observers_(observers),
        ranks_(ranks),
        ranks_met_at_(start) {}

  TrainingRun run() {
    Result<bool> goes_on = true;
    while (goes_on.ok() && *goes_on) goes_on = step();
    if (ranks_ != nullptr && !end_announced_) {
      StepTimes unused_times;
      const Result<bool> announced = wait_for_ranks(false, unused_times);
      if (goes_on.ok() && !announced.ok()) goes_on = announced.error();
    }
    if (!goes_on.ok()) run_.failure = std::move(goes_on).error();
    return std::move(run_);
  }

 private:
  // Makes one step. Returns false if it was the last step of the run, or if there was no batch for it. Only
  // the training loop's thread calls the functions of this class.
  Result<bool> step();
  Result<bool> wait_for_ranks(bool completed, StepTimes& times);
  Result<int64_t> before_step(const Batch* next);
  Result<bool> after_step(const Batch& batch);
  Result<bool> do_collective_work();
  int64_t since_start(SteadyTime time) const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - start_).count();
  }

  BatchSource& input_;
  Accelerator& accelerator_;
  const SteadyTime start_;
  const std::span<StepObserver* const> observers_;
  Communicator* const ranks_;   // null: this rank makes its steps without other ranks
  SteadyTime ranks_met_at_;     // when the last wait_for_ranks() ended, on all ranks
  int64_t collective_ns_ = 0;   // time in do_collective_work() since the previous step
  bool end_announced_ = false;  // the other ranks know that the run ends, so no rank waits for this one
  TrainingRun run_;
};

Result<bool> Loop::step() {
  PENSTOCK_ASSIGN(const Batch* const batch, input_.next());
  PENSTOCK_ASSIGN(const int64_t observer_ns, before_step(batch));
  if (batch == nullptr) {
    run_.observer_after_ns = collective_ns_ + observer_ns;
    return false;
  }
  const SteadyTime handed_at = std::chrono::steady_clock::now();
  PENSTOCK_ASSIGN(const Step step, accelerator_.step(*batch));
  StepTimes times{.epoch = batch->epoch,
                  .payload_bytes = std::accumulate(batch->length.begin(), batch->length.end(), uint64_t{0}),
                  .handed_ns = since_start(handed_at),
                  .begin_ns = since_start(step.begin),
                  .deadline_ns = since_start(step.deadline),
                  .end_ns = since_start(step.end),
                  .nominal_ns = step.nominal.count(),
                  .busy_ns = step.busy.count(),
                  .next_may_begin_ns = since_start(step.deadline),
                  .observer_ns = collective_ns_ + observer_ns,
                  .collective_ns = collective_ns_};
  if (ranks_ != nullptr) {
    PENSTOCK_ASSIGN(const bool completed_by_all, wait_for_ranks(true, times));
    if (!completed_by_all) {  // another rank's input has ended, so the run ends on all
      PENSTOCK_ASSIGN(const int64_t after_ns, before_step(nullptr));
      run_.observer_after_ns = collective_ns_ + after_ns;
      return false;
    }
    accelerator_.set_step_end(ranks_met_at_);
    if (times.straggler_ns == 0) ++run_.steps_arrived_last;
  }
  collective_ns_ = 0;
  run_.batch = batch->samples();
  run_.steps.push_back(times);
  PENSTOCK_ASSIGN(const bool goes_on, after_step(*batch));
  if (!goes_on) return false;
  return do_collective_work();
}

// Calls after_step() of every observer, even if an earlier observer wants to end the run. Returns false if
// one of them wants to end it.
Result<bool> Loop::after_step(const Batch& batch) {
  bool all_go_on = true;
  for (StepObserver* const observer : observers_) {
    PENSTOCK_ASSIGN(const bool goes_on, observer->after_step(run_.steps.size() - 1, batch));
    all_go_on = all_go_on && goes_on;
  }
  return all_go_on;
}

// Lets the observers do their collective work, if some is due. First it waits for all ranks: if a rank has
// failed, no rank may begin the work, or it would wait there for the failed rank for ever. Returns false if
// the run ends because of that.
Result<bool> Loop::do_collective_work() {
  const uint64_t steps = run_.steps.size();
  const auto has_work = [steps](const StepObserver* observer) {
    return observer->collective_work_due(steps);
  };
  if (std::none_of(observers_.begin(), observers_.end(), has_work)) return true;
  const SteadyTime since = std::chrono::steady_clock::now();
  if (ranks_ != nullptr) {
    StepTimes unused_times;
    PENSTOCK_ASSIGN(const bool all_arrived, wait_for_ranks(true, unused_times));
    if (!all_arrived) return false;
  }
  for (StepObserver* const observer : observers_)
    if (has_work(observer)) PENSTOCK_TRY(observer->do_collective_work(steps));
  const SteadyTime end = std::chrono::steady_clock::now();
  accelerator_.set_step_end(end);
  collective_ns_ = std::chrono::duration_cast<std::chrono::nanoseconds>(end - since).count();
  return true;
}

// Calls before_step() of every observer. Returns the time that they took, or 0 if none of them did any work.
// If there was work, the next step begins no earlier than at its end.
Result<int64_t> Loop::before_step(const Batch* next) {
  const SteadyTime since = std::chrono::steady_clock::now();
  bool any_took_time = false;
  for (StepObserver* const observer : observers_) {
    PENSTOCK_ASSIGN(const bool took_time, observer->before_step(run_.steps.size(), next));
    any_took_time = any_took_time || took_time;
  }
  if (!any_took_time) return 0;
  const SteadyTime end = std::chrono::steady_clock::now();
  accelerator_.set_step_end(end);
  return std::chrono::duration_cast<std::chrono::nanoseconds>(end - since).count();
}

// Waits until all ranks have called this function, and stores the parts of the wait in `times`. `completed`:
// whether this rank completed the step. A rank that cannot make a step passes false, once, and ends its
// training. Returns whether every rank completed the step. If not, no rank makes another step.
Result<bool> Loop::wait_for_ranks(bool completed, StepTimes& times) {
  const SteadyTime arrived = std::chrono::steady_clock::now();
  const double since_met_ns = std::chrono::duration<double, std::nano>(arrived - ranks_met_at_).count();
  std::array<double, 2> maxima{since_met_ns, completed ? 0.0 : 1.0};
  end_announced_ = true;
  PENSTOCK_TRY(ranks_->all_reduce(std::span<double>(maxima), Reduction::max));
  ranks_met_at_ = std::chrono::steady_clock::now();
  const int64_t waited_ns = (ranks_met_at_ - arrived).count();
  times.next_may_begin_ns = since_start(ranks_met_at_);
  times.straggler_ns = std::min(waited_ns, int64_t(maxima[0] - since_met_ns));
  times.barrier_ns = waited_ns - times.straggler_ns;
  end_announced_ = maxima[1] != 0.0;
  return !end_announced_;
}

}  // namespace

std::unique_ptr<Accelerator> no_accelerator() {
  return std::make_unique<NoAccelerator>();
}

TrainingRun run_training(BatchSource& input, Accelerator& accelerator, SteadyTime start,
                         std::span<StepObserver* const> observers, Communicator* ranks) {
  return Loop(input, accelerator, start, observers, ranks).run();
}

TrainingFigures figures(const TrainingRun& run, std::chrono::nanoseconds nominal_step,
                        const ExcludedSteps& excluded) {
  TrainingFigures result;
  if (run.steps.empty()) return result;
  const StepTimes& first_step = run.steps.front();
  const StepTimes& last_step = run.steps.back();
  result.wall_s = seconds(std::max(last_step.end_ns, last_step.next_may_begin_ns) + run.observer_after_ns);
  result.first_batch_s = seconds(first_step.handed_ns);
  int64_t waited_ns = 0;
  int64_t free_since_ns = 0;
  int64_t computed_ns = 0;
  int64_t straggled_ns = 0;
  int64_t observers_ns = 0;
  for (const StepTimes& step : run.steps) {
    waited_ns += step.begin_ns - free_since_ns - step.observer_ns;
    observers_ns += step.observer_ns;
    free_since_ns = step.next_may_begin_ns;
    computed_ns += step.busy_ns;
    straggled_ns += step.straggler_ns;
    result.payload_bytes += double(step.payload_bytes);
  }
  result.input_wait_s = seconds(waited_ns);
  result.straggler_s = seconds(straggled_ns);
  result.barrier_s = seconds(free_since_ns - waited_ns - computed_ns - straggled_ns - observers_ns);
  result.observer_s = seconds(observers_ns + run.observer_after_ns);
  result.steps_arrived_last = run.steps_arrived_last;
  result.samples = double(run.steps.size()) * double(run.batch);
  if (nominal_step.count() > 0) result.step_overshoot = median_overshoot(run.steps);
  if (computed_ns == 0 || run.steps.size() < 2) return result;
  result.utilization = double(computed_ns - first_step.busy_ns) /
                       double(last_step.end_ns - std::min(first_step.deadline_ns, first_step.end_ns) -
                              observers_ns + first_step.observer_ns);
  result.utilization_dlio = dlio_utilization(run.steps, excluded);
  return result;
}

double input_overlap(double input_wait_s, double input_alone_s) {
  return input_alone_s > 0 ? 1.0 - input_wait_s / input_alone_s : 0.0;
}

double input_alone_s(const TrainingRun& alone, uint64_t steps) {
  if (alone.steps.empty()) return 0;
  const double first_s = seconds(alone.steps.front().end_ns);
  if (alone.steps.size() < 2) return first_s;
  const double s_per_step = (seconds(alone.steps.back().end_ns) - first_s) / double(alone.steps.size() - 1);
  return first_s + s_per_step * double(steps - 1);
}

}  // namespace penstock
