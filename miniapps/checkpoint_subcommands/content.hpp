// The data that `save` saves: the bytes of a payload, or the files of a folder.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/payload.hpp"

namespace penstock {

// What one rank saves: its bytes, in memory. Moving the object does not move the bytes, so views of them stay
// valid.
class SavedContent {
 public:
  // This rank's share of the training state that `payload` names, such as "resnet50" or "512MiB"
  // (payload.hpp), with the bytes that it has at `step`.
  static Result<SavedContent> of_payload(const std::string& payload, uint64_t rank, uint64_t ranks,
                                         uint64_t seed, uint64_t step);
  // The files of a folder or TIER, distributed over the ranks in the order of their names. invalid_argument
  // if the folder has subfolders or other names that a checkpoint cannot have, or if a rank would get no
  // file.
  static Result<SavedContent> of_folder(const std::string& folder, NamedTiers named, uint64_t rank,
                                        uint64_t ranks);

  // For a SaveRequest: the files, and the name of their payload ("" for a folder's files).
  const std::vector<FileView>& files() const { return files_; }
  const std::string& payload() const { return payload_; }

 private:
  std::string payload_;
  std::unique_ptr<PayloadState> state_;  // null: the files are of a folder
  std::vector<Buffer> memory_;           // the bytes of a folder's files
  std::vector<FileView> files_;          // views of the bytes in state_ or memory_
};

}  // namespace penstock
