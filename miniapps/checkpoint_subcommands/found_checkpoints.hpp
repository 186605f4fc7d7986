// What several stores have of a run together: each checkpoint with all of its copies.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/restart.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// One checkpoint of a run with all of its copies.
struct FoundCheckpoint {
  std::string run;
  CheckpointId id;
  std::vector<FoundCopy> copies;  // in the order of the stores

  // Whether a slow store has it, as far as manifests tell.
  bool durable() const;
  const FoundCopy* in(StoreRole role) const;   // null: no copy there whose manifest is right
  const CheckpointManifest* manifest() const;  // of the first right copy; null: none is
};

// Of the run, oldest first.
Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::string_view run);

// Bytes, and whose: the same ones, wherever and whenever they were committed.
bool same_content(const CheckpointManifest& one, const CheckpointManifest& other);

}  // namespace penstock
