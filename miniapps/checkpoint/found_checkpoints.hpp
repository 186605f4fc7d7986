// What several stores have of a run together: each checkpoint with all of its copies.
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

  // Whether a slow store has it, as far as manifests tell.
  bool durable() const;
  const Listed* in(StoreRole role) const;      // null: no copy there whose manifest is right
  const CheckpointManifest* manifest() const;  // of the first right copy; null: none is
};

// Of the run, oldest first.
Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::string_view run);

// Of several runs, one after the other.
Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::span<const std::string> runs);

// Bytes, and whose: the same ones, wherever and whenever they were committed.
bool same_content(const CheckpointManifest& one, const CheckpointManifest& other);

}  // namespace penstock
