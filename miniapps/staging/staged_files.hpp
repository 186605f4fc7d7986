// Copies the files of a plan to the fast tier and verifies the copies. Also removes the copies again.
#pragma once

#include <cstdint>
#include <functional>
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

// The two tiers of a plan. As long as the object exists, the fast tier is locked for the plan against other
// processes.
class StagedTiers {
 public:
  // Opens both tiers and takes the lock. busy if another process applies or reverts this plan.
  static Result<StagedTiers> open(const StagingPlan& plan);

  Tier slow;
  Tier fast;
  std::unique_ptr<Lock> lock;  // declared last, so that it is destroyed before the tier that it locks
};

struct ApplyOutcome {
  uint64_t copied = 0;
  uint64_t already_there = 0;  // with the right bytes, by an earlier apply or another program
  uint64_t bytes_copied = 0;
  double seconds = 0;
  // Originals that changed after the plan was made, with reasons. They are not copied.
  std::vector<std::string> changed{};
  std::set<std::string> changed_names{};  // their names; copies of them by an earlier apply are out of date
  bool complete = false;                  // false: interrupted; all existing copies are complete
};

// Copies the files of the plan to the fast tier, with the mode and times of their originals. Keeps existing
// files that have the right bytes. Copies each missing file into a file without a name (or with a hidden one)
// and syncs this copy. Then gives the copy its name, syncs its folder, reads the copy back and compares.
// `state` is new, or from an earlier apply. It is saved before the first copy and after the last one, also
// after a failure, so that a later call can continue. Any thread may call `warn`, with one sentence.
//
// no_space: the files do not fit (found out before the first copy), or the tier is full. already_exists: a
// file of the same name has other bytes. corrupt: the tier returned other bytes than were written.
Result<ApplyOutcome> apply_plan(const StagingPlan& plan, StagedTiers& tiers, StagedState& state,
                                unsigned threads, bool progress,
                                const std::function<void(std::string_view)>& warn);

// Returns the state of an earlier apply, with its list of found files brought up to date. Without one,
// returns a new state, which lists the files that are already on the tier.
Result<StagedState> begin_state(const StagingPlan& plan, StagedTiers& tiers);

struct RevertOutcome {
  uint64_t removed = 0;
  uint64_t bytes_removed = 0;
  uint64_t not_there = 0;
  uint64_t found_before = 0;        // files that this plan found and did not copy; they stay
  std::vector<std::string> kept{};  // files that changed after they were copied, with reasons; they stay
  bool complete = false;            // false: interrupted; the same call continues
};

// Removes the copies whose bytes are still the copied ones. After a killed apply, also removes files whose
// bytes are those of the original. Then removes the folders that apply made, if they are empty, and the
// state, if no copy stays.
Result<RevertOutcome> revert_plan(const StagingPlan& plan, StagedTiers& tiers, const StagedState& state,
                                  unsigned threads, bool progress);

// Whether an apply of this plan has started and was not reverted: its state or its lock file exists. Call it
// before taking the lock, since taking the lock makes folders.
Result<bool> is_started(const StagingPlan& plan);

// Removes the state, the lock file, and the folders that contained them, if these are then empty. The caller
// holds the lock.
void forget_plan(StagedTiers& tiers, std::string_view plan_id);

}  // namespace penstock
