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
  // Samples of a batch; make() lowers it if a pass would have fewer samples.
  uint64_t batch = 1;
  uint64_t prefetch = 0;
  uint64_t seed = 0;
  int rank = 0;  // each rank reads every `ranks`-th file
  int ranks = 1;
  unsigned threads = 1;
  size_t depth = 1;
  BadSample bad_sample = BadSample::fail;
  std::chrono::nanoseconds patience{0};
  // If a run continues after --resume: how many steps the earlier processes made, and in which epoch they
  // stopped. They made no validation pass after their last step. For a new run made_steps is 0 and epoch is
  // empty.
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
// thread also calls next() of batches_.
class Validating final : public StepObserver {
 public:
  // Makes the validation. `accelerator` describes the accelerator for its batches, as text for
  // make_accelerator(). Borrows `how`, the back end of its files, and the manifest of their samples.
  // invalid_argument if there are fewer files than ranks. `exhausted` if there is no memory for a batch.
  static Result<std::unique_ptr<Validating>> make(const Validation& how, Backend& backend,
                                                  const Manifest& samples, const std::string& accelerator,
                                                  const ValidatingSettings& settings);

  // Runs a validation pass if one is due. A signal ends the pass with Errc::interrupted.
  Result<bool> before_step(uint64_t steps, const Batch* next) override;

  ValidationFigures figures() const;
  uint64_t bytes() const { return figures_.bytes; }  // bytes of the samples so far
  LoaderLosses losses() const;
  // Stops the workers and waits for at most `patience`. False: a worker hangs (see BatchSource::close()). Do
  // not call before_step() afterwards.
  bool close(std::chrono::nanoseconds patience) { return !batches_ || batches_->close(patience); }
  bool stalled() const { return batches_ && batches_->stalled(); }

 private:
  Validating(const Validation& how, Backend& backend, const Manifest& samples, Sampler sampler,
             BatchPool pool, std::unique_ptr<Accelerator> accelerator, const ValidatingSettings& settings);
  // Whether a validation pass is due before step number `step`, which counts from the start of the whole run.
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
  std::optional<uint64_t> epoch_;  // the epoch of the training's latest batch
  ValidationFigures figures_;      // without `files` and `read_s` of the current batches_
  LoaderLosses losses_;            // without the losses of the current batches_
};

struct TrainOutcome;

// Adds how many files were read for training and for validation to the record, and the rates of these reads.
// Only for a run over whole files. `outcome` and `validation` are the sums of all ranks.
void record_files(const TrainPlan& plan, const TrainOutcome& outcome, const ValidationFigures& validation,
                  Trial& trial);

// Makes the validation of the plan for one tier. `step` is the accelerator's nominal step time. Returns null
// if the plan has no validation, and for --find-accelerators. Borrows plan and tier.
Result<std::unique_ptr<Validating>> make_validating(const TrainPlan& plan, const Tier& tier,
                                                    std::chrono::nanoseconds step);

}  // namespace penstock
