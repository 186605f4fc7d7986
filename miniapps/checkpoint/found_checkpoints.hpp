// Combines what several stores have of a run: each checkpoint with all of its copies.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// One checkpoint of a run with all of its copies.
struct FoundCheckpoint {
  std::string run;
  CheckpointId id;
  std::vector<Listed> copies;  // in the order of the stores, fast ones first

  // Whether a slow store has a copy with a valid manifest. Does not read the files.
  bool durable() const;
  const Listed* in(StoreRole role) const;      // null: no such store has a copy with a valid manifest
  const CheckpointManifest* manifest() const;  // of the first copy where it is valid; null: of none
};

// The checkpoints of the run, oldest first.
Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::string_view run);

// The checkpoints of several runs, in the order of `runs`.
Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::span<const std::string> runs);

// Whether two copies have the same run, id, ranks and files. Store and commit time may differ.
bool same_content(const CheckpointManifest& one, const CheckpointManifest& other);

}  // namespace penstock
