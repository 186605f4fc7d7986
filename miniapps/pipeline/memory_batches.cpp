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

// Makes batches from samples in memory. Only the consumer's thread may use it, but any thread may call
// times(). The class has no threads and needs no lock of its own, so close() only closes upstream.
// The first call of next() loads all samples from upstream. Only this call tests for a signal. It allocates,
// and so do later calls at the start of an epoch.
class MemoryBatches final : public BatchSource {
 public:
  MemoryBatches(std::unique_ptr<BatchSource> samples, BatchPool& pool, const PlanLimits& limits,
                std::function<Sampler(uint64_t samples)> sampler_of)
      : limits_(limits),
        sampler_of_(std::move(sampler_of)),
        sample_source_(std::move(samples)),
        all_samples_(pool.all_samples()),
        batch_(pool.batch_to_fill()),
        epoch_(limits.start.epoch) {}

  Result<const Batch*> next() override;
  std::vector<StageTally> times() const override { return sample_source_->times(); }
  LoaderLosses losses() const override;
  std::vector<LostTime> lost_times() const override;
  bool close(std::chrono::nanoseconds patience) override { return sample_source_->close(patience); }
  bool stalled() const override { return sample_source_->stalled(); }

 private:
  Result<void> load();
  bool begin_epoch();
  void copy_batch();

  const PlanLimits limits_;
  const std::function<Sampler(uint64_t samples)> sampler_of_;
  const std::unique_ptr<BatchSource> sample_source_;
  Batch& all_samples_;
  Batch& batch_;
  uint64_t loaded_samples_ = 0;
  bool loaded_ = false;
  bool ended_ = false;
  std::optional<Sampler> sampler_;  // gives the order of the samples that upstream loaded
  EpochOrder order_;
  uint64_t epoch_;  // the epoch that begins next
  uint64_t handed_batches_ = 0;
  uint64_t dropped_tail_ = 0;
  std::chrono::nanoseconds copy_time_{0};  // time spent on copying
};

Result<void> MemoryBatches::load() {
  while (loaded_samples_ < all_samples_.samples()) {
    PENSTOCK_ASSIGN(const Batch* const sample, sample_source_->next());
    if (sample == nullptr) break;
    const auto since = Clock::now();
    std::memcpy(all_samples_.slot_memory(size_t(loaded_samples_)).data(), sample->slot(0).data(),
                all_samples_.slot_bytes);
    all_samples_.index[size_t(loaded_samples_)] = sample->index[0];
    all_samples_.label[size_t(loaded_samples_)] = sample->label[0];
    all_samples_.length[size_t(loaded_samples_)] = sample->length[0];
    ++loaded_samples_;
    copy_time_ += Clock::now() - since;
  }
  sampler_ = sampler_of_(loaded_samples_);
  if (sampler_->per_epoch() >= batch_.samples()) return success();
  return make_error(Errc::corrupt, "only " + std::to_string(loaded_samples_) +
                                       " samples are usable, too few for --batch " +
                                       std::to_string(batch_.samples()));
}

bool MemoryBatches::begin_epoch() {
  if (limits_.epochs != 0 && epoch_ >= limits_.epochs) return false;
  order_ = sampler_->epoch(epoch_, epoch_ == limits_.start.epoch ? limits_.start.used_samples : 0);
  ++epoch_;
  return true;
}

void MemoryBatches::copy_batch() {
  for (size_t i = 0; i < batch_.samples(); ++i) {
    const auto sample = size_t(order_.next());
    std::memcpy(batch_.slot_memory(i).data(), all_samples_.slot(sample).data(), all_samples_.slot_bytes);
    batch_.index[i] = all_samples_.index[sample];
    batch_.label[i] = all_samples_.label[sample];
    batch_.length[i] = all_samples_.length[sample];
  }
}

Result<const Batch*> MemoryBatches::next() {
  if (!loaded_) {
    PENSTOCK_TRY(load());
    loaded_ = true;
    ended_ = !begin_epoch();
  }
  if (ended_ || limits_.reached(handed_batches_)) return static_cast<const Batch*>(nullptr);
  const auto since = Clock::now();
  if (order_.left() < batch_.samples()) {
    dropped_tail_ += order_.left();
    ended_ = !begin_epoch();
    if (ended_) return static_cast<const Batch*>(nullptr);
  }
  copy_batch();
  ++handed_batches_;
  batch_.epoch = epoch_ - 1;
  batch_.filled_at = Clock::now();
  copy_time_ += batch_.filled_at - since;
  return static_cast<const Batch*>(&batch_);
}

LoaderLosses MemoryBatches::losses() const {
  LoaderLosses losses = sample_source_->losses();
  losses.dropped_tail += dropped_tail_;
  return losses;
}

std::vector<LostTime> MemoryBatches::lost_times() const {
  std::vector<LostTime> lost = sample_source_->lost_times();
  for (LostTime& part : lost)
    if (part.cause == "collate") part.seconds += std::chrono::duration<double>(copy_time_).count();
  return lost;
}

}  // namespace

std::unique_ptr<BatchSource> make_memory_batches(std::unique_ptr<BatchSource> samples, BatchPool& pool,
                                                 const PlanLimits& limits,
                                                 std::function<Sampler(uint64_t samples)> sampler_of) {
  return std::make_unique<MemoryBatches>(std::move(samples), pool, limits, std::move(sampler_of));
}

}  // namespace penstock
