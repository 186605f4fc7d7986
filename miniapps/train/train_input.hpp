// What feeds a run of `train`, by what was asked for: batches straight from samples, out of whole files, or
// from memory; and what goes on between its steps.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string_view>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/memory_batches.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/train/epoch_checkpoints.hpp"
#include "miniapps/train/epoch_counter.hpp"
#include "miniapps/train/train_setup.hpp"
#include "miniapps/train/validating.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {

// The order of this rank's samples; invalid_argument, with the remedy, where an epoch has fewer than a step
// takes.
Result<Sampler> make_sampler(const TrainSetup& setup, const Corpus& corpus);

// What a rank uses of an epoch, the tail included; of files that hold different numbers, at least that many.
std::uint64_t samples_an_epoch(const TrainSetup& setup, const Sampler& sampler);

// Steps of a run, unless something fails; of one that goes on with another, those that are left.
std::uint64_t planned_steps(const TrainSetup& setup, const Corpus& corpus);
std::uint64_t steps_an_epoch(const TrainSetup& setup, const Corpus& corpus);

// What happens between steps, counted from the begin of the whole run; nothing where neither is there. What
// validating reads from where the epochs' bytes are counted is counted with them. Borrows everything.
BeforeStep between_steps(const TrainSetup& setup, Validating* validating, EpochCheckpoints* checkpoints,
                         EpochCounter& epochs);

// Reads on their way, a thread.
std::size_t queue_depth(const TrainSetup& setup, const Tier& tier);

// Why samples that are left as they are stored are not used where the tier has them; "" where they are.
std::string_view why_copied(const TrainSetup& setup, const Corpus& corpus, const Tier& tier);

// What the loader's batches are.
BatchShape batch_shape(const TrainSetup& setup, const Corpus& corpus, bool in_place);

// Of one rank, on one tier. Borrows everything, as does all that it makes. One thread.
class TrainInput {
 public:
  TrainInput(const TrainSetup& setup, const Corpus& corpus, const Tier& tier, BatchPool& pool)
      : setup_(setup), corpus_(corpus), tier_(tier), pool_(pool) {}

  std::size_t depth() const { return queue_depth(setup_, tier_); }
  bool in_place() const { return pool_.shape().in_place; }  // samples are used where the tier has them
  std::uint64_t steps_an_epoch() const { return penstock::steps_an_epoch(setup_, corpus_); }
  std::uint64_t planned_steps() const { return penstock::planned_steps(setup_, corpus_); }
  double planned_loads() const;  // samples, or files, that workers try at most

  // The memory that apps hold all samples in; before the first make(). exhausted where there is not so much.
  Result<void> reserve();
  // Its workers run from here on. With `spans`, one buffer a worker and one more, they say there what they
  // do.
  Result<std::unique_ptr<BatchSource>> make(const PlanLimits& limits, SpanLog* spans = nullptr) const;
  // Null where nothing is validated, as in a search. `step` is the accelerator's nominal one.
  Result<std::unique_ptr<Validating>> make_validating(std::chrono::nanoseconds step) const;
  // Null where none are written, as in a search, and on all ranks but the first.
  Result<std::unique_ptr<EpochCheckpoints>> make_checkpoints() const;

 private:
  Result<std::unique_ptr<BatchSource>> hold_in_memory(std::unique_ptr<BatchSource> samples,
                                                      const PlanLimits& limits) const;
  PlanLimits in_files(const PlanLimits& limits) const;
  struct FilePlace {
    std::uint64_t files = 0;    // of its order, used up, and
    std::uint64_t samples = 0;  // of the next one
  };
  FilePlace place_in_files(const Sampler& sampler) const;

  const TrainSetup& setup_;
  const Corpus& corpus_;
  const Tier& tier_;
  BatchPool& pool_;
  mutable std::optional<MemoryRoom> room_;  // lent to what make() gives
};

}  // namespace penstock
