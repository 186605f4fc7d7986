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
  uint64_t batch = 1;  // samples of a batch; make() lowers it if a pass has fewer
  uint64_t prefetch = 0;
  uint64_t seed = 0;
  int rank = 0;  // each rank reads every R-th file, R = `ranks`
  int ranks = 1;
  unsigned threads = 1;
  size_t depth = 1;
  BadSample bad_sample = BadSample::fail;
  std::chrono::nanoseconds patience{0};
  // For a training that continues the run of another process: that process made `made_steps` steps and
  // stopped in `epoch`, and has not validated since.
  uint64_t made_steps = 0;
  std::optional<uint64_t> epoch{};
};

struct ValidationFigures {
  uint64_t passes = 0;
  uint64_t samples = 0;
  uint64_t bytes = 0;  // bytes of these samples as stored
  uint64_t files = 0;  // loaded files
  double read_s = 0;   // time of the workers in reads, summed over workers
};

// Only the training loop's thread, the consumer of the batches, uses it. No lock.
class Validating final : public StepObserver {
 public:
  // Borrows `how`, the back end of its files, and the manifest of the samples in them. `accelerator` computes
  // on the batches (make_accelerator). invalid_argument if there are fewer files than ranks. exhausted if
  // there is no memory for one batch.
  static Result<std::unique_ptr<Validating>> make(const Validation& how, Backend& backend,
                                                  const Manifest& samples, const std::string& accelerator,
                                                  const ValidatingSettings& settings);

  // Runs a pass if one is due. A signal ends it with Errc::interrupted.
  Result<bool> before_step(uint64_t steps, const Batch* next) override;

  ValidationFigures figures() const;
  uint64_t bytes() const { return figures_.bytes; }  // bytes of the samples so far
  LoaderLosses losses() const;
  // Like BatchSource::close(). Do not call before_step() afterwards.
  bool close(std::chrono::nanoseconds patience) { return !batches_ || batches_->close(patience); }
  bool stalled() const { return batches_ && batches_->stalled(); }

 private:
  Validating(const Validation& how, Backend& backend, const Manifest& samples, Sampler sampler,
             BatchPool pool, std::unique_ptr<Accelerator> accelerator, const ValidatingSettings& settings);
  // `step` counts from the start of the whole run.
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
  std::optional<uint64_t> epoch_;  // epoch of the training; the pass after it has the same number
  ValidationFigures figures_;      // its files and read_s do not include batches_
  LoaderLosses losses_;            // does not include those of batches_
};

struct TrainOutcome;

// Adds the files that were read for training and validation, and their rates, to the record of a run over
// whole files. Both arguments are of all ranks.
void record_files(const TrainPlan& plan, const TrainOutcome& outcome, const ValidationFigures& validation,
                  Trial& trial);

// Makes the validation of the plan for one tier. Null if there is none, as in a search. `step` is the
// accelerator's nominal step. Borrows plan and tier.
Result<std::unique_ptr<Validating>> make_validating(const TrainPlan& plan, const Tier& tier,
                                                    std::chrono::nanoseconds step);

}  // namespace penstock
