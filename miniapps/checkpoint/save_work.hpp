// One save as the ranks carry it out together.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "miniapps/checkpoint/checkpoint_manifest.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// What a save is of, without its bytes: these may be elsewhere by the time they are written.
struct SaveWork {
  CheckpointId id;
  std::uint64_t bytes = 0;  // over all ranks
  bool fast = false;        // where it goes
  std::vector<FileView> files;
  CheckpointManifest manifest;                  // of rank 0: all but the files
  std::string folder;                           // in the making
  std::unique_ptr<Staged> staged;               // this rank's hold of it
  std::chrono::steady_clock::time_point until;  // when waiting for room ends
};

}  // namespace penstock
