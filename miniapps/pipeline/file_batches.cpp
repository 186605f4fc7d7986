#include "miniapps/pipeline/file_batches.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace penstock {

Permutation file_order(uint64_t seed, uint64_t epoch, uint64_t file, uint32_t samples) {
  const RandomStream seeds = RandomStream(seed, "train.file").substream(file);
  return Permutation(samples, seeds.bits(epoch));
}

FileBatches::FileBatches(std::unique_ptr<BatchSource> files, const FileBatchesSettings& settings)
    : settings_(settings), file_source_(std::move(files)), handed_batches_(settings.handed_batches) {
  batch_.slot_bytes = settings.sample_bytes;
  batch_.index.resize(settings.batch);
  batch_.label.resize(settings.batch);
  batch_.length.resize(settings.batch);
}

Result<std::unique_ptr<FileBatches>> FileBatches::make(std::unique_ptr<BatchSource> files,
                                                       const FileBatchesSettings& settings) {
  try {
    std::unique_ptr<FileBatches> result(new FileBatches(std::move(files), settings));
    if (settings.batch > 1) {
      const size_t bytes = settings.batch * settings.sample_bytes;
      result->batch_.memory.grow(bytes);
      std::memset(result->batch_.memory.data(), 0, bytes);
    }
    return result;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "a batch of " + std::to_string(settings.batch) +
                                           " samples does not fit in memory: choose a smaller --batch");
  }
}

// Gets the next file from upstream. If the file is of another epoch, the samples of an incomplete batch are
// dropped. Returns false if next() must return null: either there is no further file, or the pause between
// two epochs has come.
Result<bool> FileBatches::take_file() {
  PENSTOCK_ASSIGN(file_, file_source_->next());
  file_samples_ = used_samples_ = 0;
  if (file_ == nullptr || (filled_slots_ > 0 && file_->epoch != batch_.epoch)) {
    dropped_tail_ += filled_slots_;
    filled_slots_ = 0;
  }
  if (file_ == nullptr) return false;
  const bool is_new_epoch = last_epoch_ && last_epoch_ != file_->epoch;
  if (last_epoch_ != file_->epoch) {
    if (last_epoch_ && handed_batches_ == handed_before_epoch_)
      return make_error(Errc::corrupt, "one epoch has fewer than " + std::to_string(settings_.batch) +
                                           " samples for a batch: choose a smaller --batch");
    // 0 for the first epoch of this process: an earlier process may have handed out batches of that epoch.
    handed_before_epoch_ = last_epoch_ ? handed_batches_ : 0;
    last_epoch_ = file_->epoch;
  }
  ++files_used_;
  const uint64_t file = file_->index[0];
  const uint32_t samples = settings_.files->samples_of_object[size_t(file)].samples;
  file_samples_ = samples;
  if (files_used_ == 1) used_samples_ = settings_.used_of_first_file;
  order_ = file_order(settings_.seed, file_->epoch, file, samples);
  return !(is_new_epoch && settings_.pauses_between_epochs);
}

void FileBatches::set_slot_facts(size_t slot, uint64_t position) {
  const auto& file_samples = settings_.files->samples_of_object[size_t(file_->index[0])];
  const uint64_t index = file_samples.first_sample + order_.at(position);
  const SampleEntry& entry = settings_.corpus->sample(index);
  batch_.index[slot] = index;
  batch_.label[slot] = entry.label;
  batch_.length[slot] = entry.length;
}

const Batch* FileBatches::view_batch() {
  const size_t bytes = settings_.sample_bytes;
  for (size_t i = 0; i < settings_.batch; ++i) set_slot_facts(i, used_samples_ + i);
  batch_.view = file_->slot(0).subspan(size_t(used_samples_) * bytes, settings_.batch * bytes);
  batch_.epoch = file_->epoch;
  batch_.filled_at = file_->filled_at;
  used_samples_ += settings_.batch;
  return &batch_;
}

void FileBatches::copy_samples() {
  const auto since = std::chrono::steady_clock::now();
  const size_t bytes = settings_.sample_bytes;
  const auto count =
      size_t(std::min<uint64_t>(settings_.batch - filled_slots_, file_samples_ - used_samples_));
  for (size_t i = 0; i < count; ++i) set_slot_facts(filled_slots_ + i, used_samples_ + i);
  std::memcpy(batch_.memory.data() + filled_slots_ * bytes,
              file_->slot(0).data() + size_t(used_samples_) * bytes, count * bytes);
  batch_.epoch = file_->epoch;
  filled_slots_ += count;
  used_samples_ += count;
  batch_.filled_at = std::chrono::steady_clock::now();
  copy_time_ += batch_.filled_at - since;
}

Result<const Batch*> FileBatches::next() {
  if (settings_.most_batches != 0 && handed_batches_ >= settings_.most_batches)
    return static_cast<const Batch*>(nullptr);
  batch_.view = {};
  filled_slots_ = 0;
  while (true) {
    if (used_samples_ == file_samples_) {
      PENSTOCK_ASSIGN(const bool goes_on, take_file());
      if (!goes_on) return static_cast<const Batch*>(nullptr);
    }
    if (filled_slots_ == 0 && file_samples_ - used_samples_ >= settings_.batch) {
      ++handed_batches_;
      return view_batch();
    }
    copy_samples();
    if (filled_slots_ == settings_.batch) {
      ++handed_batches_;
      return static_cast<const Batch*>(&batch_);
    }
  }
}

LoaderLosses FileBatches::losses() const {
  LoaderLosses losses = file_source_->losses();
  losses.dropped_tail += dropped_tail_;
  return losses;
}

std::vector<LostTime> FileBatches::lost_times() const {
  std::vector<LostTime> lost = file_source_->lost_times();
  for (LostTime& part : lost)
    if (part.cause == "collate") part.seconds += std::chrono::duration<double>(copy_time_).count();
  return lost;
}

}  // namespace penstock
