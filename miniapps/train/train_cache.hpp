// The cache that a training begins with, and the proof of I/O: what of its data came from devices meanwhile.
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

// What one epoch consumed, and what of it devices and servers delivered meanwhile. Reads that run ahead of
// the accelerator count in the epoch that it is in.
struct EpochBytes {
  std::uint64_t consumed = 0;
  std::uint64_t fetched = 0;
};

// What devices and servers delivered while the accelerator was in an epoch. What is delivered before the
// first step of an epoch has ended counts to the epoch before (to the first one, what is before its own): it
// was read ahead, all or in part. One thread.
class EpochCounter final : public StepObserver {
 public:
  // `validating` may be null; what it reads is counted with the epoch before it. It comes earlier in the list
  // of observers.
  EpochCounter(const Tier& tier, const Validating* validating)
      : tier_(tier), validating_(validating), fetched_before_(fetched()) {}

  Result<bool> before_step(std::uint64_t steps, const Batch* next) override;
  Result<bool> after_step(std::uint64_t step, const Batch& batch) override;
  // Of all epochs; none where the bytes are not counted.
  std::vector<EpochBytes> finish();

 private:
  std::optional<std::uint64_t> fetched() const;
  void settle();

  const Tier& tier_;
  const Validating* const validating_;
  std::uint64_t validated_ = 0;  // its bytes so far
  std::optional<std::uint64_t> fetched_before_;
  std::uint64_t epoch_ = 0;
  std::vector<EpochBytes> epochs_;
};

// The cache of one tier, which all ranks prepare together.
class TrainCache {
 public:
  // Borrows both. Errors as corpus_samples().
  static Result<std::unique_ptr<TrainCache>> make(const TrainPlan& plan, const Tier& tier);

  // Brings about what --cache asks for. Collective.
  Result<void> prepare();
  // What prepare() found: the state and the verdict.
  void record(Trial& trial) const;
  // Adds what came from devices to the state that record() gave, and by epoch. `epochs` are of all ranks.
  void record_epochs(const std::vector<EpochBytes>& epochs, Trial& trial) const;
  // Whether the pipeline can also run by itself before the training, without leaving it another cache.
  bool same_again() const;
  std::uint64_t warmed_bytes() const { return control_.warmed_bytes(); }  // read so far

 private:
  TrainCache(const TrainPlan& plan, const Tier& tier, SampleList samples);

  const TrainPlan& plan_;
  const Tier& tier_;
  const SampleList samples_;
  CacheControl control_;  // borrows samples_
  CacheOutcome found_;
};

}  // namespace penstock
