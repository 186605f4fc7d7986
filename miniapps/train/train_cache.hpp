// Brings the caches into the requested state before a training, and counts the bytes that devices delivered
// during the training.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "datagen/cache/cache_control.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/train_plan.hpp"
#include "miniapps/train/validating.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Bytes that the accelerator consumed in one epoch, and bytes that devices and servers delivered during that
// epoch. Bytes that are read ahead for the next epoch count in the current epoch.
struct EpochBytes {
  uint64_t consumed = 0;
  uint64_t fetched = 0;
};

// Counts the bytes that devices and servers deliver in each epoch. For this count an epoch begins at the end
// of its first step: bytes that came before were at least in part read ahead, so they count in the previous
// epoch. The first epoch begins at the start.
// Only the training loop's thread uses it.
class EpochCounter final : public StepObserver {
 public:
  // `validating` may be null. The bytes that a validation pass reads count in the epoch of the last step
  // before the pass. In the list of observers `validating` must come before this observer.
  EpochCounter(const Tier& tier, const Validating* validating)
      : tier_(tier), validating_(validating), fetched_before_(fetched()) {}

  Result<bool> before_step(uint64_t steps, const Batch* next) override;
  Result<bool> after_step(uint64_t step, const Batch& batch) override;
  // Ends the count of the final epoch and returns one entry for each epoch. Empty if the tier's bytes cannot
  // be counted.
  std::vector<EpochBytes> finish();

 private:
  std::optional<uint64_t> fetched() const;
  void close_epoch();

  const Tier& tier_;
  const Validating* const validating_;
  uint64_t validation_bytes_ = 0;  // bytes that validation has read so far
  std::optional<uint64_t> fetched_before_;
  uint64_t epoch_ = 0;
  std::vector<EpochBytes> epochs_;
};

// Sets the cache state of one tier before a training. All ranks do this together.
class TrainCache {
 public:
  // Borrows the plan and the tier. The errors are those of corpus_samples().
  static Result<std::unique_ptr<TrainCache>> make(const TrainPlan& plan, const Tier& tier);

  // Brings the caches into the state that --cache requests. Collective.
  Result<void> prepare();
  // Adds the cache state that prepare() proved to the record, and a verdict if that state is not the
  // requested one.
  void record(Trial& trial) const;
  // Adds the bytes from devices to the record, in total and for each epoch. `epochs` are the sums of all
  // ranks.
  void record_epochs(const std::vector<EpochBytes>& epochs, Trial& trial) const;
  // Whether the pipeline can run without an accelerator before the training, and the training still starts in
  // the requested cache state.
  bool keeps_cache_state() const;
  // Bytes read so far to warm the cache.
  uint64_t warmed_bytes() const { return control_.warmed_bytes(); }

 private:
  TrainCache(const TrainPlan& plan, const Tier& tier, SampleList samples);

  const TrainPlan& plan_;
  const Tier& tier_;
  const SampleList samples_;
  CacheControl control_;  // borrows samples_, which is therefore declared before it
  CacheOutcome prepare_outcome_;
};

}  // namespace penstock
