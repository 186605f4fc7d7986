// A corpus that is loaded once, all of it, and then used from memory, epoch by epoch.
//
// Upstream is a loader of batches of one sample, which gives each sample once. The first call of next() takes
// all of them; from then on a batch is copied together from what is held, in the order that a sampler gives.
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

// Room for that many samples and a batch of them, touched, so that nothing of it is charged to the run.
// exhausted where that is more than there is.
struct MemoryRoom {
  Batch held;   // as one batch
  Batch batch;  // that is handed out
};
Result<MemoryRoom> memory_room(std::uint64_t samples, std::size_t slot_bytes, std::size_t batch);

// One thread, but for times(), which any may call.
class MemoryBatches final : public BatchSource {
 public:
  // Borrows the room. `sampler_of` gives the order of this rank's part of that number of samples.
  MemoryBatches(std::unique_ptr<BatchSource> samples, MemoryRoom& room, const PlanLimits& limits,
                std::function<Sampler(std::uint64_t samples)> sampler_of);

  // The first call fails with upstream's error, or with `corrupt` where too few samples came for a batch.
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
  std::optional<Sampler> sampler_;  // of those that came
  EpochOrder order_;
  std::uint64_t epoch_;  // the next to begin
  std::uint64_t handed_ = 0;
  std::uint64_t dropped_tail_ = 0;
  std::chrono::nanoseconds copied_{0};  // time it took
};

}  // namespace penstock
