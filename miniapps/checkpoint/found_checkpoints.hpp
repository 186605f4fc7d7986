// Lists the checkpoints of a run: those of one store, or each checkpoint with all of its copies in several
// stores.
#pragma once

#include <cstdint>
#include <deque>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// One checkpoint in a store: its manifest, or the error if the manifest is not valid.
struct ListedCheckpoint {
  CheckpointId id;
  Result<CheckpointManifest> manifest;
  CheckpointStore* store = nullptr;  // set only by find_checkpoints(), which lists several stores
};

// Returns the checkpoints of the run in one store, oldest first. Each has its manifest, read from the store,
// or the error of CheckpointStore::manifest(). Skips entries whose names are not those of checkpoints, and
// checkpoints that another process removes meanwhile.
Result<std::vector<ListedCheckpoint>> list_checkpoints(const CheckpointStore& store, std::string_view run);

// Sorts the checkpoints of the run on the fast tier, oldest first: `durable` gets those that the slow tier
// has with the same files, `pending` the others. Moves corrupt fast copies to quarantine, and returns how
// many it moved. Skips checkpoints that are written in another version of the format. The caller holds the
// run's locks of both stores.
Result<uint64_t> sort_fast_checkpoints(CheckpointStore& fast, CheckpointStore& slow, std::string_view run,
                                       std::deque<CheckpointManifest>& durable,
                                       std::deque<CheckpointManifest>& pending);

// One checkpoint of a run with all of its copies.
struct FoundCheckpoint {
  std::string run;
  CheckpointId id;
  std::vector<ListedCheckpoint> copies;  // in the order of the stores, fast ones first

  // Whether a slow store has a copy with a valid manifest. Does not read the files.
  bool is_durable() const;
  // The copy with a valid manifest in a store of this role; null if there is none.
  const ListedCheckpoint* valid_copy_in(StoreRole role) const;
  const CheckpointManifest* manifest() const;  // manifest of the first copy that has a valid one, or null
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
