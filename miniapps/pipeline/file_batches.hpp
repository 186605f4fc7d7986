// Batches out of whole files, for programs that load a file, put its samples into another order, and take
// batches from what they have in memory until it is used up.
//
// Upstream is a loader whose samples are files and whose batches hold one: a file that is in its slot is
// its samples as tensors, one behind another, in the order of file_order(). With a prefetch depth of K files
// that loader is at most K files ahead; with 0 a file is loaded when the one before is used up, as the
// published programs do.
//
// A batch that lies within a file is a view of it. One that begins in a file and ends in a later one is
// copied together. A batch never mixes epochs: what an epoch leaves over is dropped, and counted.
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

// The order in which the samples of a file are used: position i has sample at(i) of the file. `file` is its
// place in WholeObjects. Any thread. Needs samples > 0.
Permutation file_order(std::uint64_t seed, std::uint64_t epoch, std::uint64_t file, std::uint32_t samples);

struct FileBatchesSettings {
  const Manifest* corpus = nullptr;     // whose samples they are
  const WholeObjects* files = nullptr;  // what upstream's samples are; both are borrowed
  std::size_t sample_bytes = 0;         // of a tensor
  std::size_t batch = 1;
  std::uint64_t most_batches = 0;  // 0: as many as upstream gives; with those that were handed
  std::uint64_t handed = 0;        // before, by a run that this one goes on with, and that has used
  std::uint64_t in_first = 0;      // that many samples of the first file
  std::uint64_t seed = 0;          // of file_order()
  bool pauses = false;  // next() gives null whenever an epoch is over, with the next one's first file
                        // in hand, and goes on with that when it is called again
};

// One thread, but for times(), which any may call.
class FileBatches final : public BatchSource {
 public:
  // exhausted where there is no memory for a batch that is copied together.
  static Result<std::unique_ptr<FileBatches>> make(std::unique_ptr<BatchSource> files,
                                                   const FileBatchesSettings& settings);

  Result<const Batch*> next() override;
  std::vector<StageTally> times() const override { return files_->times(); }
  // Skipped are files; a tail is samples.
  LoaderLosses losses() const override;
  std::vector<LostTime> lost() const override;
  bool close(std::chrono::nanoseconds patience) override { return files_->close(patience); }
  bool stalled() const override { return files_->stalled(); }
  std::uint64_t files_used() const override { return files_used_; }

 private:
  FileBatches(std::unique_ptr<BatchSource> files, const FileBatchesSettings& settings);
  Result<bool> take_file();
  void describe(std::size_t slot, std::uint64_t position);
  const Batch* view();
  void copy_some();

  const FileBatchesSettings settings_;
  const std::unique_ptr<BatchSource> files_;
  const Batch* file_ = nullptr;  // in hand, upstream's
  std::uint64_t in_file_ = 0;    // samples of it
  std::uint64_t used_ = 0;       // of these
  Permutation order_{0, 0};      // of it
  Batch batch_;                  // its memory is for what is copied together
  std::size_t filled_ = 0;       // slots of batch_, between batches
  std::uint64_t handed_ = 0;
  std::uint64_t handed_before_ = 0;     // before the epoch of file_
  std::optional<std::uint64_t> epoch_;  // that one
  std::uint64_t files_used_ = 0;
  std::uint64_t dropped_tail_ = 0;
  std::chrono::nanoseconds copied_{0};  // time it took
};

}  // namespace penstock
