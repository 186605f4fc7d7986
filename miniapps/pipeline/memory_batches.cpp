#include "miniapps/pipeline/memory_batches.hpp"

#include <chrono>
#include <cstring>
#include <optional>
#include <string>
#include <utility>
#include <vector>

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

// The consumer's thread alone, except for times(), which any thread may call. It has no lock of its own:
// close() stops upstream. next() tests for a signal only in its first call, while upstream loads. It
// allocates in that call and at the begin of an epoch.
class MemoryBatches final : public BatchSource {
 public:
  MemoryBatches(std::unique_ptr<BatchSource> samples, BatchPool& pool, const PlanLimits& limits,
                std::function<Sampler(std::uint64_t samples)> sampler_of)
      : limits_(limits),
        sampler_of_(std::move(sampler_of)),
        samples_(std::move(samples)),
        held_(pool.all_samples()),
        batch_(pool.copy()),
        epoch_(limits.start.epoch) {}

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

Result<void> MemoryBatches::load() {
  while (count_ < held_.samples()) {
    PENSTOCK_ASSIGN(const Batch* const sample, samples_->next());
    if (sample == nullptr) break;
    const auto since = Clock::now();
    std::memcpy(held_.room(static_cast<std::size_t>(count_)).data(), sample->slot(0).data(),
                held_.slot_bytes);
    held_.index[static_cast<std::size_t>(count_)] = sample->index[0];
    held_.label[static_cast<std::size_t>(count_)] = sample->label[0];
    held_.length[static_cast<std::size_t>(count_)] = sample->length[0];
    ++count_;
    copied_ += Clock::now() - since;
  }
  sampler_ = sampler_of_(count_);
  if (sampler_->per_epoch() >= batch_.samples()) return success();
  return make_error(Errc::corrupt, "only " + std::to_string(count_) +
                                       " samples are good, too few for a batch of " +
                                       std::to_string(batch_.samples()));
}

bool MemoryBatches::begin_epoch() {
  if (limits_.epochs != 0 && epoch_ >= limits_.epochs) return false;
  order_ = sampler_->epoch(epoch_, epoch_ == limits_.start.epoch ? limits_.start.used : 0);
  ++epoch_;
  return true;
}

void MemoryBatches::gather() {
  for (std::size_t i = 0; i < batch_.samples(); ++i) {
    const auto from = static_cast<std::size_t>(order_.next());
    std::memcpy(batch_.room(i).data(), held_.slot(from).data(), held_.slot_bytes);
    batch_.index[i] = held_.index[from];
    batch_.label[i] = held_.label[from];
    batch_.length[i] = held_.length[from];
  }
}

Result<const Batch*> MemoryBatches::next() {
  if (!loaded_) {
    PENSTOCK_TRY(load());
    loaded_ = true;
    ended_ = !begin_epoch();
  }
  if (ended_ || limits_.reached(handed_)) return static_cast<const Batch*>(nullptr);
  const auto since = Clock::now();
  if (order_.left() < batch_.samples()) {
    dropped_tail_ += order_.left();
    ended_ = !begin_epoch();
    if (ended_) return static_cast<const Batch*>(nullptr);
  }
  gather();
  ++handed_;
  batch_.epoch = epoch_ - 1;
  batch_.ready = Clock::now();
  copied_ += batch_.ready - since;
  return static_cast<const Batch*>(&batch_);
}

LoaderLosses MemoryBatches::losses() const {
  LoaderLosses losses = samples_->losses();
  losses.dropped_tail += dropped_tail_;
  return losses;
}

std::vector<LostTime> MemoryBatches::lost() const {
  std::vector<LostTime> lost = samples_->lost();
  for (LostTime& part : lost)
    if (part.cause == "collate") part.seconds += std::chrono::duration<double>(copied_).count();
  return lost;
}

}  // namespace

std::unique_ptr<BatchSource> make_memory_batches(std::unique_ptr<BatchSource> samples, BatchPool& pool,
                                                 const PlanLimits& limits,
                                                 std::function<Sampler(std::uint64_t samples)> sampler_of) {
  return std::make_unique<MemoryBatches>(std::move(samples), pool, limits, std::move(sampler_of));
}

}  // namespace penstock
