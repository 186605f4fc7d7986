// The two stores of a run, and the locks that keep everybody else from the run.
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
  std::unique_ptr<CheckpointStore> fast;     // null: none
  std::vector<std::unique_ptr<Lock>> locks;  // empty where another rank holds them

  CheckpointStore& of(bool is_fast) const { return is_fast ? *fast : *slow; }
};

// What a run is locked for in a store.
inline constexpr std::string_view kRunWorks[] = {"save", "drain"};
// Takes all locks of the run in one store. busy: somebody has one; those before it are in `locks` then.
Result<void> lock_works(CheckpointStore& store, const std::string& run,
                        std::vector<std::unique_ptr<Lock>>& locks);
// CheckpointStore::sweep() for all of them. The caller holds the locks.
Result<std::uint64_t> sweep_works(CheckpointStore& store, const std::string& run);

// For the one process that has the run: opens or makes the stores, takes the locks of both (busy: another
// training, a drain or gc has one; nothing is changed then), notes where the run drains to, and sweeps what
// a dead one left. `fast` may be null; the tiers outlive what is returned. All that works on a run takes the
// fast store's locks first: of two that begin at once, one gets all.
Result<RunStores> take_run(const std::string& run, const Tier& slow, const Tier* fast);

// For the other ranks: the same stores, which are there.
Result<RunStores> see_run(const Tier& slow, const Tier* fast);

}  // namespace penstock
