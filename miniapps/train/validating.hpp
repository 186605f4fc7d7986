// Validates between the steps of a training: loads batches of the validation files and measures the passes.
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
  uint64_t batch = 1;  // samples of a batch; make() lowers it if a pass has fewer samples
  uint64_t prefetch = 0;
  uint64_t seed = 0;
  int rank = 0;  // each rank reads every `ranks`-th file
  int ranks = 1;
  unsigned threads = 1;
  size_t depth = 1;
  BadSample bad_sample = BadSample::fail;
  std::chrono::nanoseconds patience{0};
  // For a training that continues after --resume: the previous process made `made_steps` steps, stopped in
  // `epoch`, and has not validated since.
  uint64_t made_steps = 0;
  std::optional<uint64_t> epoch{};
};

struct ValidationFigures {
  uint64_t passes = 0;
  uint64_t samples = 0;
  uint64_t bytes = 0;  // the stored bytes of these samples
  uint64_t files = 0;  // files that were loaded
  double read_s = 0;   // time that workers spent in reads, summed over the workers
};

// Runs the validation passes between steps. Only the training loop's thread uses it, without a lock. That
// thread is also the consumer of its batches.
class Validating final : public StepObserver {
 public:
  // `accelerator` is the accelerator that computes on the batches, as text for make_accelerator(). Borrows
  // `how`, the back end of its files, and the manifest of the samples in them. invalid_argument if there are
  // fewer files than ranks. exhausted if there is no memory for one batch.
  static Result<std::unique_ptr<Validating>> make(const Validation& how, Backend& backend,
                                                  const Manifest& samples, const std::string& accelerator,
                                                  const ValidatingSettings& settings);

  // Runs a validation pass if one is due. A signal ends the pass with Errc::interrupted.
  Result<bool> before_step(uint64_t steps, const Batch* next) override;

  ValidationFigures figures() const;
  uint64_t bytes() const { return figures_.bytes; }  // bytes of the samples so far
  LoaderLosses losses() const;
  // Stops the workers, as BatchSource::close(). Do not call before_step() after it.
  bool close(std::chrono::nanoseconds patience) { return !batches_ || batches_->close(patience); }
  bool stalled() const { return batches_ && batches_->stalled(); }

 private:
  Validating(const Validation& how, Backend& backend, const Manifest& samples, Sampler sampler,
             BatchPool pool, std::unique_ptr<Accelerator> accelerator, const ValidatingSettings& settings);
  // Whether a pass is due before this step. `step` counts from the start of the whole run.
  bool pass_due(uint64_t step, const Batch* next) const;
  Result<void> start_pass();
  Result<void> run_pass();

  const Validation& plan_;
  Backend& backend_;
  const Manifest& manifest_;
  const Sampler sampler_;
  BatchPool pool_;
  const std::unique_ptr<Accelerator> accelerator_;
  const ValidatingSettings settings_;
  std::unique_ptr<FileBatches> batches_;
  std::optional<uint64_t> epoch_;  // the training's epoch; a pass after it has its number
  ValidationFigures figures_;      // `files` and `read_s` do not include those of batches_
  LoaderLosses losses_;            // does not include those of batches_
};

struct TrainOutcome;

// For a run over whole files: adds to the record how many files were read for training and for validation,
// and their rates. `outcome` and `validation` are those of all ranks.
void record_files(const TrainPlan& plan, const TrainOutcome& outcome, const ValidationFigures& validation,
                  Trial& trial);

// Makes the validation of the plan for one tier. Null if the plan has none, and for --find-accelerators.
// `step` is the accelerator's nominal step time. Borrows plan and tier.
Result<std::unique_ptr<Validating>> make_validating(const TrainPlan& plan, const Tier& tier,
                                                    std::chrono::nanoseconds step);

}  // namespace penstock
