#include "miniapps/pipeline/training.hpp"

#include <algorithm>
#include <cstddef>
#include <numeric>
#include <span>
#include <utility>

#include "results/statistics.hpp"

namespace penstock {
namespace {

double seconds(std::int64_t nanoseconds) {
  return static_cast<double>(nanoseconds) * 1e-9;
}

// One epoch, which has at least one step.
double dlio_epoch(std::span<const StepTimes> steps) {
  std::int64_t computing = 0;
  for (const StepTimes& step : steps.subspan(1)) computing += step.end_ns - step.handed_ns;
  const std::int64_t wall = steps.back().end_ns - steps.front().end_ns;
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

}  // namespace

TrainingRun run_training(Stage<const Batch*>& input, Accelerator& accelerator, SteadyTime start,
                         const StepWatcher& watcher) {
  TrainingRun run;
  const auto since_start = [start](SteadyTime time) {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(time - start).count();
  };
  while (true) {
    Result<const Batch*> batch = input.next();
    if (!batch.ok()) {
      run.failure = std::move(batch).error();
      return run;
    }
    if (*batch == nullptr) return run;
    const SteadyTime handed = std::chrono::steady_clock::now();
    Result<Step> step = accelerator.step(**batch);
    if (!step.ok()) {
      run.failure = std::move(step).error();
      return run;
    }
    const std::vector<std::uint64_t>& lengths = (*batch)->length;
    run.batch = (*batch)->samples();
    run.steps.push_back({.epoch = (*batch)->epoch,
                         .payload_bytes = std::accumulate(lengths.begin(), lengths.end(), std::uint64_t{0}),
                         .handed_ns = since_start(handed),
                         .begin_ns = since_start(step->begin),
                         .deadline_ns = since_start(step->deadline),
                         .end_ns = since_start(step->end)});
    if (!watcher) continue;
    Result<bool> go_on = watcher(run.steps.size() - 1, **batch);
    if (!go_on.ok()) {
      run.failure = std::move(go_on).error();
      return run;
    }
    if (!*go_on) return run;
  }
}

TrainingFigures figures(const TrainingRun& run, std::chrono::nanoseconds nominal_step) {
  TrainingFigures result;
  if (run.steps.empty()) return result;
  const StepTimes& first = run.steps.front();
  const StepTimes& last = run.steps.back();
  result.wall_s = seconds(last.end_ns);
  result.first_batch_s = seconds(first.handed_ns);
  std::int64_t waited = 0;
  std::int64_t free = 0;
  for (const StepTimes& step : run.steps) {
    waited += step.begin_ns - free;
    free = step.deadline_ns;
    result.payload_bytes += static_cast<double>(step.payload_bytes);
  }
  result.input_wait_s = seconds(waited);
  result.samples = static_cast<double>(run.steps.size()) * static_cast<double>(run.batch);
  if (nominal_step.count() <= 0) return result;

  std::vector<double> overshoots;
  overshoots.reserve(run.steps.size());
  std::int64_t nominal_sum = 0;
  for (const StepTimes& step : run.steps) {
    const std::int64_t nominal = step.deadline_ns - step.begin_ns;
    nominal_sum += nominal;
    overshoots.push_back(static_cast<double>(step.end_ns - step.deadline_ns) / static_cast<double>(nominal));
  }
  result.step_overshoot = median(overshoots);
  if (run.steps.size() < 2) return result;
  result.utilization = static_cast<double>(nominal_sum - (first.deadline_ns - first.begin_ns)) /
                       static_cast<double>(last.end_ns - first.end_ns);
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
