#include "miniapps/pipeline/memory_batches.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

void make_room(Batch& batch, std::size_t samples, std::size_t slot_bytes) {
  batch.slot_bytes = slot_bytes;
  batch.index.resize(samples);
  batch.label.resize(samples);
  batch.length.resize(samples);
  batch.memory.grow(samples * slot_bytes);
  std::memset(batch.memory.data(), 0, samples * slot_bytes);
}

}  // namespace

Result<MemoryRoom> memory_room(std::uint64_t samples, std::size_t slot_bytes, std::size_t batch) {
  const auto too_many = [&] {
    return make_error(Errc::exhausted, std::to_string(samples) + " samples of " + format_size(slot_bytes) +
                                           " do not fit in memory, where this app holds them");
  };
  if (samples > memory_for_samples() / std::max<std::size_t>(1, slot_bytes)) return too_many();
  try {
    MemoryRoom room;
    make_room(room.held, static_cast<std::size_t>(samples), slot_bytes);
    make_room(room.batch, batch, slot_bytes);
    return room;
  } catch (const std::bad_alloc&) {
    return too_many();
  }
}

MemoryBatches::MemoryBatches(std::unique_ptr<BatchSource> samples, MemoryRoom& room, const PlanLimits& limits,
                             std::function<Sampler(std::uint64_t samples)> sampler_of)
    : limits_(limits),
      sampler_of_(std::move(sampler_of)),
      samples_(std::move(samples)),
      held_(room.held),
      batch_(room.batch),
      epoch_(limits.start.epoch) {}

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
    if (part.to == "collate") part.seconds += std::chrono::duration<double>(copied_).count();
  return lost;
}

}  // namespace penstock
