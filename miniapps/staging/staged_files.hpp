// A plan's files brought to the fast tier by a verified copy, and taken away again.
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

// The two tiers of a plan, held by one process at a time. The fast one is locked until this dies.
class StagedTiers {
 public:
  // busy where another process applies or reverts this plan.
  static Result<StagedTiers> open(const StagingPlan& plan);

  Tier slow;
  Tier fast;
  std::unique_ptr<Lock> lock;  // last: it goes before what it locks
};

struct ApplyOutcome {
  std::uint64_t copied = 0;
  std::uint64_t already_there = 0;  // right, by an earlier apply or by somebody else
  std::uint64_t bytes_copied = 0;
  double seconds = 0;
  std::vector<std::string>
      changed{};  // originals that are not what the plan was made for: not copied, and why
  std::set<std::string> changed_names{};  // likewise; what an earlier apply copied of them is out of date
  bool complete = false;                  // false: interrupted; what is there is whole
};

// Each file is read and written under no name that anybody looks for, synced, given its name, its folder
// synced, read back and compared. What is there already and right stays. `state` is what an earlier apply
// left, or new; it is saved before the first copy and after the last, also when that fails, so that the same
// call goes on. Copies get their original's mode and times.
//
// no_space before anything is written where it does not fit, or where the tier says so; already_exists where
// a file of the name is there with other bytes; corrupt where the tier gives back other bytes than it was
// given.
Result<ApplyOutcome> apply_plan(const StagingPlan& plan, StagedTiers& tiers, StagedState& state,
                                unsigned threads, bool progress);

// As an earlier apply left it, less what was found there and is gone; else what lies on the tier now.
Result<StagedState> begin_state(const StagingPlan& plan, StagedTiers& tiers);

struct RevertOutcome {
  std::uint64_t removed = 0;
  std::uint64_t bytes_removed = 0;
  std::uint64_t not_there = 0;
  std::uint64_t found_before = 0;   // not of this plan: they stay
  std::vector<std::string> kept{};  // somebody changed them: they stay, and why
  bool complete = false;            // false: interrupted; the same call goes on
};

// Removes the copies that are what was copied, or where an apply was killed and could not say that, what the
// originals are; the folders that were made, as far as they are empty; and, when nothing is kept, the state.
Result<RevertOutcome> revert_plan(const StagingPlan& plan, StagedTiers& tiers, const StagedState& state,
                                  unsigned threads, bool progress);

// Whether anything of the plan can be there at all, if only the lock of an apply that was killed. Asked
// before the lock is taken, which would make folders.
Result<bool> is_started(const StagingPlan& plan);

// Removes the state and the lock, and what of our folders is empty then.
void forget_plan(StagedTiers& tiers, std::string_view plan_id);

}  // namespace penstock
