// Copies the files of a plan to the fast tier and verifies them, and removes them again.
#pragma once

#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/staging/staged_state.hpp"
#include "datagen/staging/staging_plan.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// The two tiers of a plan. Until this is destroyed the fast one is locked for the plan, against other
// processes.
class StagedTiers {
 public:
  // busy where another process applies or reverts this plan.
  static Result<StagedTiers> open(const StagingPlan& plan);

  Tier slow;
  Tier fast;
  std::unique_ptr<Lock> lock;  // last: destroyed before the tier that it locks
};

struct ApplyOutcome {
  std::uint64_t copied = 0;
  std::uint64_t already_there = 0;  // right, copied by an earlier apply or by another program
  std::uint64_t bytes_copied = 0;
  double seconds = 0;
  std::vector<std::string>
      changed{};  // originals that changed after the plan was made: not copied, with the reason
  std::set<std::string> changed_names{};  // their names; a copy by an earlier apply is out of date
  bool complete = false;                  // false: interrupted; every copy on the tier is whole
};

// Each file is copied without a name or under a hidden one, synced, given its name, its folder synced, read
// back and compared. Files that are there and right stay. `state` is new, or what an earlier apply left. It
// is saved before the first copy and after the last, also after a failure, so that the same call goes on.
// Copies get the mode and times of their originals.
//
// no_space: the files do not fit (before anything is written), or the tier is full. already_exists: a file
// of the same name has other bytes. corrupt: the tier returned other bytes than were written.
Result<ApplyOutcome> apply_plan(const StagingPlan& plan, StagedTiers& tiers, StagedState& state,
                                unsigned threads, bool progress);

// The state that an earlier apply left, without found files that are gone; else a new one from the tier's
// files.
Result<StagedState> begin_state(const StagingPlan& plan, StagedTiers& tiers);

struct RevertOutcome {
  std::uint64_t removed = 0;
  std::uint64_t bytes_removed = 0;
  std::uint64_t not_there = 0;
  std::uint64_t found_before = 0;   // not copied by this plan: they stay
  std::vector<std::string> kept{};  // changed after the copy: they stay, with the reason
  bool complete = false;            // false: interrupted; the same call goes on
};

// Removes the copies that still have the bytes that were copied; after a killed apply, those with the bytes
// of the originals. Then removes the folders that were made, if they are empty, and the state, if no copy is
// kept.
Result<RevertOutcome> revert_plan(const StagingPlan& plan, StagedTiers& tiers, const StagedState& state,
                                  unsigned threads, bool progress);

// Whether an apply of this plan has ever started: its state or its lock file is there. Called before the
// lock is taken, since that makes folders.
Result<bool> is_started(const StagingPlan& plan);

// Removes the state, the lock file, and our folders that are empty then. With the lock held.
void forget_plan(StagedTiers& tiers, std::string_view plan_id);

}  // namespace penstock
