// Makes batches from whole files, like training programs that load a file, shuffle its samples and use them
// up before they load the next file.
//
// FileBatches gets its files from another BatchSource, `upstream`, whose batches are one whole file each. A
// loaded file is a sequence of tensors, one for each sample, without gaps. The app's transform puts them in
// the order of file_order(), and FileBatches uses them one after the other. With a prefetch depth of K files,
// upstream is at most K files ahead. With K = 0 upstream loads a file when the samples of the previous file
// are used up, as the training programs above do.
//
// If all samples of a batch are in one file, the batch points into that file. If they are in two or more
// files, they are copied into a batch. A batch never mixes epochs: the samples that are left at the end of an
// epoch are dropped and counted.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "datagen/objects/whole_objects.hpp"
#include "io_backends/core/random.hpp"
#include "miniapps/pipeline/batch_source.hpp"

namespace penstock {

// The order in which the samples of a file are used: at(i) is the sample at position i. `file` is the index
// of the file in WholeObjects. Needs samples > 0. Any thread may call it.
Permutation file_order(uint64_t seed, uint64_t epoch, uint64_t file, uint32_t samples);

struct FileBatchesSettings {
  const Manifest* corpus = nullptr;     // the manifest of the samples in the files
  const WholeObjects* files = nullptr;  // the files that upstream loads; `corpus` and `files` are borrowed
  size_t sample_bytes = 0;              // bytes of one sample's tensor
  size_t batch = 1;
  // The most batches to hand out, including those of earlier processes (`handed_batches`). 0: no limit.
  uint64_t most_batches = 0;
  uint64_t handed_batches = 0;      // batches that earlier processes of this run handed out
  uint64_t used_of_first_file = 0;  // samples of the first file that earlier processes used
  uint64_t seed = 0;                // the seed for file_order()
  // If true, next() returns null at the end of each epoch, after loading the first file of the next epoch.
  // The next call of next() continues with that file.
  bool pauses_between_epochs = false;
};

// Makes batches from the files that upstream loads. Only the consumer's thread may use it, but any thread may
// call times(). The class has no threads and needs no lock of its own, so close() only closes upstream.
// next() tests for a signal only while upstream loads a file.
class FileBatches final : public BatchSource {
 public:
  // The error is `exhausted` if there is no memory for a batch of copied samples.
  static Result<std::unique_ptr<FileBatches>> make(std::unique_ptr<BatchSource> files,
                                                   const FileBatchesSettings& settings);

  Result<const Batch*> next() override;
  std::vector<StageTally> times() const override { return file_source_->times(); }
  // `skipped` counts files, `dropped_tail` counts samples.
  LoaderLosses losses() const override;
  std::vector<LostTime> lost_times() const override;
  bool close(std::chrono::nanoseconds patience) override { return file_source_->close(patience); }
  bool stalled() const override { return file_source_->stalled(); }
  uint64_t files_used() const override { return files_used_; }

 private:
  FileBatches(std::unique_ptr<BatchSource> files, const FileBatchesSettings& settings);
  Result<bool> take_file();
  void set_slot_facts(size_t slot, uint64_t position);
  const Batch* view_batch();
  void copy_samples();

  const FileBatchesSettings settings_;
  const std::unique_ptr<BatchSource> file_source_;
  const Batch* file_ = nullptr;  // upstream's batch that contains the current file
  uint64_t file_samples_ = 0;    // samples in that file
  uint64_t used_samples_ = 0;    // samples of that file that are in batches already
  Permutation order_{0, 0};      // order of that file's samples
  Batch batch_;                  // the batch that next() returns; its memory is used only for copied samples
  size_t filled_slots_ = 0;      // number of filled slots, while samples are copied into batch_
  uint64_t handed_batches_ = 0;
  uint64_t handed_before_epoch_ = 0;    // the value of handed_batches_ when the epoch of file_ began
  std::optional<uint64_t> last_epoch_;  // epoch of the file taken last; absent before the first
  uint64_t files_used_ = 0;
  uint64_t dropped_tail_ = 0;
  std::chrono::nanoseconds copy_time_{0};  // time spent on copying
};

}  // namespace penstock
