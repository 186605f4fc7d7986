// Loads a whole corpus once and then makes the batches of every epoch from memory.
//
// Upstream is a loader whose batches have one sample; it gives each sample once. The first call of next()
// takes all samples from it. From then on each batch is copied from the samples in memory, in the order of a
// sampler.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <vector>

#include "datagen/reading/sampler.hpp"
#include "io_backends/backend/buffer.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "miniapps/pipeline/batch_source.hpp"

namespace penstock {

// Memory for `samples` samples and for one batch of `batch` samples. It is touched, so that no step of the
// run pays for that. exhausted if there is less memory.
struct MemoryRoom {
  Batch held;   // all samples, as one batch
  Batch batch;  // the batch that next() returns
};
Result<MemoryRoom> memory_room(std::uint64_t samples, std::size_t slot_bytes, std::size_t batch);

// The consumer's thread alone, except for times(), which any thread may call. It has no lock of its own:
// close() stops upstream. next() tests for a signal only in its first call, while upstream loads. It
// allocates in that call and at the begin of an epoch.
class MemoryBatches final : public BatchSource {
 public:
  // Borrows the room. `sampler_of` returns the sampler for this rank's part of a corpus of `samples` samples.
  MemoryBatches(std::unique_ptr<BatchSource> samples, MemoryRoom& room, const PlanLimits& limits,
                std::function<Sampler(std::uint64_t samples)> sampler_of);

  // The first call fails with upstream's error, or with `corrupt` if there are too few good samples for a
  // batch.
  Result<const Batch*> next() override;
  std::vector<StageTally> times() const override { return samples_->times(); }
  LoaderLosses losses() const override;
  std::vector<LostTime> lost() const override;
  bool close(std::chrono::nanoseconds patience) override { return samples_->close(patience); }
  bool stalled() const override { return samples_->stalled(); }

 private:
  Result<void> load();
  bool begin_epoch();
  void gather();

  const PlanLimits limits_;
  const std::function<Sampler(std::uint64_t samples)> sampler_of_;
  const std::unique_ptr<BatchSource> samples_;
  Batch& held_;
  Batch& batch_;
  std::uint64_t count_ = 0;
  bool loaded_ = false;
  bool ended_ = false;
  std::optional<Sampler> sampler_;  // for the samples that upstream gave
  EpochOrder order_;
  std::uint64_t epoch_;  // the next epoch to begin
  std::uint64_t handed_ = 0;
  std::uint64_t dropped_tail_ = 0;
  std::chrono::nanoseconds copied_{0};  // time spent on copying
};

}  // namespace penstock
