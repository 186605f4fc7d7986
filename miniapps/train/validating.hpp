// Validation passes between the steps of a training: their batches, and what they took.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>

#include "io_backends/backend/backend.hpp"
#include "miniapps/pipeline/file_batches.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/file_input.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

struct ValidatingSettings {
  std::uint64_t batch = 1;  // fewer where a pass has fewer samples
  std::uint64_t prefetch = 0;
  std::uint64_t seed = 0;
  int rank = 0;  // each goes through every R-th file
  int ranks = 1;
  unsigned threads = 1;
  std::size_t depth = 1;
  BadSample bad_sample = BadSample::fail;
  std::chrono::nanoseconds patience{0};
  // Where a training goes on that another process began: that many steps are made, in this epoch, and nothing
  // has been validated since.
  std::uint64_t made = 0;
  std::optional<std::uint64_t> epoch{};
};

struct ValidationFigures {
  std::uint64_t passes = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;  // of these, as stored
  std::uint64_t files = 0;  // loaded
  double read_s = 0;        // that workers read them, summed over workers
};

// One thread.
class Validating final : public StepObserver {
 public:
  // Borrows `how`, the back end where its files lie, and the corpus that they hold the samples of.
  // `accelerator` says what works on the batches (make_accelerator). invalid_argument where there are fewer
  // files than ranks; exhausted where there is no memory for one.
  static Result<std::unique_ptr<Validating>> make(const Validation& how, Backend& backend,
                                                  const Manifest& samples, const std::string& accelerator,
                                                  const ValidatingSettings& settings);

  // A pass where one is due.
  Result<bool> before_step(std::uint64_t steps, const Batch* next) override;

  ValidationFigures figures() const;
  std::uint64_t bytes() const { return figures_.bytes; }  // of samples so far
  LoaderLosses losses() const;
  // As BatchSource::close(). No before_step() after it.
  bool close(std::chrono::nanoseconds patience) { return !source_ || source_->close(patience); }
  bool stalled() const { return source_ && source_->stalled(); }

 private:
  Validating(const Validation& how, Backend& backend, const Manifest& samples, Sampler sampler,
             BatchPool pool, std::unique_ptr<Accelerator> accelerator, const ValidatingSettings& settings);
  bool pass_due(std::uint64_t step, const Batch* next) const;  // counted from the begin of the whole run
  Result<void> begin();
  Result<void> pass();

  const Validation& how_;
  Backend& backend_;
  const Manifest& samples_;
  const Sampler sampler_;
  BatchPool pool_;
  const std::unique_ptr<Accelerator> accelerator_;
  const ValidatingSettings settings_;
  std::unique_ptr<FileBatches> source_;
  std::optional<std::uint64_t> epoch_;  // of the training: the pass after it has the same number
  ValidationFigures figures_;           // of sources that are gone, and of what was worked on
  LoaderLosses losses_;                 // of sources that are gone
};

struct TrainOutcome;

// Adds the files that were read for training and validation, and at which rate, to a run over whole files.
// Both are of all ranks.
void record_files(const TrainPlan& plan, const TrainOutcome& outcome, const ValidationFigures& validation,
                  Trial& trial);

// That of the plan for one tier; null where nothing is validated, as in a search. `step` is the accelerator's
// nominal one. Borrows both.
Result<std::unique_ptr<Validating>> make_validating(const TrainPlan& plan, const Tier& tier,
                                                    std::chrono::nanoseconds step);

}  // namespace penstock
