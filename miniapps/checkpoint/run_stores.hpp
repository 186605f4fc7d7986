// Opens the two stores of a run, and takes the locks that keep other processes from the run.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

struct RunStores {
  std::unique_ptr<CheckpointStore> slow;
  std::unique_ptr<CheckpointStore> fast;     // null: no fast tier
  std::vector<std::unique_ptr<Lock>> locks;  // rank 0 holds them; empty on the other ranks

  CheckpointStore& of(bool is_fast) const { return is_fast ? *fast : *slow; }
};

// The purposes for which a run is locked in a store.
inline constexpr std::string_view kRunPurposes[] = {"save", "drain"};
// Takes all locks of the run in one store. busy: another process holds one of them. `locks` then has those
// that were taken before the busy one.
Result<void> take_run_locks(CheckpointStore& store, const std::string& run,
                            std::vector<std::unique_ptr<Lock>>& locks);
// Calls CheckpointStore::sweep() for each of kRunPurposes. The caller holds the locks.
Result<uint64_t> sweep_run(CheckpointStore& store, const std::string& run);

// Opens or makes the stores of a run, and takes the run's locks in both. Then records to which store the run
// drains, and removes what a dead process left. Only the process that owns the run (rank 0) calls it. busy:
// another training, a drain or gc holds one of the locks; then nothing is recorded or removed, but a new
// store may have been made. `fast` may be null; the tiers must outlive the result.
// Every process takes the locks of the fast store first: if two processes start at once, one of them gets all
// locks.
Result<RunStores> open_and_lock_run(const std::string& run, const Tier& slow, const Tier* fast);

// Opens the same stores on the other ranks, after rank 0 has made them. Takes no lock.
Result<RunStores> open_run(const Tier& slow, const Tier* fast);

}  // namespace penstock
