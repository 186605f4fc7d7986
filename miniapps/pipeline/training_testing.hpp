// For tests of training: input without a pipeline, and observers made of functions.
#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <utility>
#include <vector>

#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/training.hpp"

namespace penstock {

// Delivers `batches` batches, each with three samples of 60 bytes in total, and then the end or an error.
class ScriptedInput final : public BatchSource {
 public:
  explicit ScriptedInput(int batches, std::optional<Error> then = std::nullopt)
      : left_(batches), then_(std::move(then)) {
    batch_.index = {1, 2, 3};
    batch_.length = {10, 20, 30};
  }
  Result<const Batch*> next() override {
    if (left_-- > 0) return static_cast<const Batch*>(&batch_);
    if (then_) return *then_;
    return static_cast<const Batch*>(nullptr);
  }
  std::vector<StageTally> times() const override { return {}; }
  LoaderLosses losses() const override { return {}; }
  std::vector<LostTime> lost_times() const override { return {}; }
  bool close(std::chrono::nanoseconds /*patience*/) override { return true; }
  bool stalled() const override { return false; }

 private:
  int left_;
  std::optional<Error> then_;
  Batch batch_;
};

// An observer that calls those of its functions that are set.
struct ScriptedObserver final : StepObserver {
  std::function<Result<bool>(uint64_t, const Batch*)> before{};
  std::function<Result<bool>(uint64_t, const Batch&)> after{};
  std::function<bool(uint64_t)> due_after{};
  std::function<Result<void>(uint64_t)> held{};

  Result<bool> before_step(uint64_t steps, const Batch* next) override {
    return before ? before(steps, next) : Result<bool>(false);
  }
  Result<bool> after_step(uint64_t step, const Batch& batch) override {
    return after ? after(step, batch) : Result<bool>(true);
  }
  bool collective_work_due(uint64_t steps) const override { return due_after && due_after(steps); }
  Result<void> do_collective_work(uint64_t steps) override { return held(steps); }
};

inline TrainingRun run_observed(BatchSource& input, Accelerator& accelerator, StepObserver& observer) {
  StepObserver* const observers[] = {&observer};
  return run_training(input, accelerator, std::chrono::steady_clock::now(), observers);
}

}  // namespace penstock
