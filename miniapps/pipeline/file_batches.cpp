#include "miniapps/pipeline/file_batches.hpp"

#include <algorithm>
#include <cstring>
#include <new>
#include <string>
#include <utility>

namespace penstock {

Permutation file_order(std::uint64_t seed, std::uint64_t epoch, std::uint64_t file, std::uint32_t samples) {
  const RandomStream seeds = RandomStream(seed, "train.file").substream(file);
  return Permutation(samples, seeds.bits(epoch));
}

FileBatches::FileBatches(std::unique_ptr<BatchSource> files, const FileBatchesSettings& settings)
    : settings_(settings), file_source_(std::move(files)), handed_(settings.handed) {
  batch_.slot_bytes = settings.sample_bytes;
  batch_.index.resize(settings.batch);
  batch_.label.resize(settings.batch);
  batch_.length.resize(settings.batch);
}

Result<std::unique_ptr<FileBatches>> FileBatches::make(std::unique_ptr<BatchSource> files,
                                                       const FileBatchesSettings& settings) {
  try {
    std::unique_ptr<FileBatches> made(new FileBatches(std::move(files), settings));
    if (settings.batch > 1) {
      const std::size_t bytes = settings.batch * settings.sample_bytes;
      made->batch_.memory.grow(bytes);
      std::memset(made->batch_.memory.data(), 0, bytes);
    }
    return made;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "a batch of " + std::to_string(settings.batch) +
                                           " samples does not fit in memory: choose a smaller --batch");
  }
}

// Gets the next file. The samples of an incomplete batch are dropped if the file is of another epoch. False:
// next() must return null, because there is no further file or because of a pause between epochs.
Result<bool> FileBatches::take_file() {
  PENSTOCK_ASSIGN(file_, file_source_->next());
  in_file_ = used_ = 0;
  if (file_ == nullptr || (filled_ > 0 && file_->epoch != batch_.epoch)) {
    dropped_tail_ += filled_;
    filled_ = 0;
  }
  if (file_ == nullptr) return false;
  const bool another = epoch_ && epoch_ != file_->epoch;
  if (epoch_ != file_->epoch) {
    if (epoch_ && handed_ == handed_before_)
      return make_error(Errc::corrupt,
                        "a whole epoch has no " + std::to_string(settings_.batch) + " samples for a batch");
    handed_before_ = epoch_ ? handed_ : 0;  // an earlier run may have started the first epoch
    epoch_ = file_->epoch;
  }
  ++files_used_;
  const std::uint64_t file = file_->index[0];
  const std::uint32_t samples = settings_.files->samples_of_object[static_cast<std::size_t>(file)].samples;
  in_file_ = samples;
  if (files_used_ == 1) used_ = settings_.in_first;
  order_ = file_order(settings_.seed, file_->epoch, file, samples);
  return !(another && settings_.pauses);
}

void FileBatches::describe(std::size_t slot, std::uint64_t position) {
  const auto& held = settings_.files->samples_of_object[static_cast<std::size_t>(file_->index[0])];
  const std::uint64_t index = held.first + order_.at(position);
  const SampleEntry& entry = settings_.corpus->sample(index);
  batch_.index[slot] = index;
  batch_.label[slot] = entry.label;
  batch_.length[slot] = entry.length;
}

const Batch* FileBatches::view() {
  const std::size_t bytes = settings_.sample_bytes;
  for (std::size_t i = 0; i < settings_.batch; ++i) describe(i, used_ + i);
  batch_.view = file_->slot(0).subspan(static_cast<std::size_t>(used_) * bytes, settings_.batch * bytes);
  batch_.epoch = file_->epoch;
  batch_.ready = file_->ready;
  used_ += settings_.batch;
  return &batch_;
}

void FileBatches::copy_some() {
  const auto since = std::chrono::steady_clock::now();
  const std::size_t bytes = settings_.sample_bytes;
  const auto count =
      static_cast<std::size_t>(std::min<std::uint64_t>(settings_.batch - filled_, in_file_ - used_));
  for (std::size_t i = 0; i < count; ++i) describe(filled_ + i, used_ + i);
  std::memcpy(batch_.memory.data() + filled_ * bytes,
              file_->slot(0).data() + static_cast<std::size_t>(used_) * bytes, count * bytes);
  batch_.epoch = file_->epoch;
  filled_ += count;
  used_ += count;
  batch_.ready = std::chrono::steady_clock::now();
  copied_ += batch_.ready - since;
}

Result<const Batch*> FileBatches::next() {
  if (settings_.most_batches != 0 && handed_ >= settings_.most_batches)
    return static_cast<const Batch*>(nullptr);
  batch_.view = {};
  filled_ = 0;
  while (true) {
    if (used_ == in_file_) {
      PENSTOCK_ASSIGN(const bool goes_on, take_file());
      if (!goes_on) return static_cast<const Batch*>(nullptr);
    }
    if (filled_ == 0 && in_file_ - used_ >= settings_.batch) {
      ++handed_;
      return view();
    }
    copy_some();
    if (filled_ == settings_.batch) {
      ++handed_;
      return static_cast<const Batch*>(&batch_);
    }
  }
}

LoaderLosses FileBatches::losses() const {
  LoaderLosses losses = file_source_->losses();
  losses.dropped_tail += dropped_tail_;
  return losses;
}

std::vector<LostTime> FileBatches::lost() const {
  std::vector<LostTime> lost = file_source_->lost();
  for (LostTime& part : lost)
    if (part.cause == "collate") part.seconds += std::chrono::duration<double>(copied_).count();
  return lost;
}

}  // namespace penstock
