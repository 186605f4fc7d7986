// What `save` saves: a payload's bytes, or a folder's files.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/payload.hpp"

namespace penstock {

// One rank's bytes, in memory, as they are to be saved. Moving it leaves them where they are.
class SavedContent {
 public:
  // As many bytes as that payload's state has for this rank, of that step.
  static Result<SavedContent> of_payload(const std::string& payload, std::uint64_t rank, std::uint64_t ranks,
                                         std::uint64_t seed, std::uint64_t step);
  // The files of a folder or TIER, which holds nothing else, dealt out over the ranks by name.
  // invalid_argument where a rank would get none.
  static Result<SavedContent> of_folder(const std::string& folder, std::uint64_t rank, std::uint64_t ranks);

  // For a SaveRequest: the files, and what their bytes are of ("" for a folder's).
  const std::vector<FileView>& files() const { return files_; }
  const std::string& payload() const { return payload_; }

 private:
  std::string payload_;
  std::unique_ptr<TrainedState> state_;  // null: of a folder
  std::vector<Buffer> memory_;           // of a folder's files
  std::vector<FileView> files_;          // views into either
};

}  // namespace penstock
