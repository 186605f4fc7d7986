// Records what `stage apply` has done on a fast tier. With it, an interrupted apply can continue, and `stage
// revert` removes only files that apply has copied. The file is on the fast tier, in Penstock's own folder.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct StagedState {
  std::string plan_id;
  // Files of the plan that existed before any apply, sorted. Never removed.
  std::vector<std::string> found_files{};
  std::vector<std::string> new_folders{};  // folders that did not exist before, parents first
  std::vector<std::string> link_farms{};   // absolute paths of link farms that were started
  std::map<std::string, PublishedObject> copied{};
  // Whether copies may exist that `copied` does not list: an apply is running, or was killed before it saved
  // its state.
  bool may_have_unlisted_copies = false;

  bool was_found(const std::string& name) const;
  // Call it if a file of `found_files` does not exist: a later file of this name is a copy by apply.
  void remove_from_found(const std::string& name);
  bool operator==(const StagedState&) const = default;
};

// One line of sealed JSON, like a plan.
std::string staged_state_text(const StagedState& state);
Result<StagedState> parse_staged_state(std::string_view text, std::string_view where);

// The names of the state (".penstock/staged/<id>.json") and of the lock that an apply or revert holds.
std::string staged_state_name(std::string_view plan_id);
std::string staged_lock_name(std::string_view plan_id);
inline constexpr std::string_view kStagedFolder = ".penstock/staged";

// `not_found` if the plan was never applied on this tier.
Result<StagedState> load_staged_state(Backend& fast, std::string_view plan_id);
// Replaces the state atomically. It survives a power cut when this returns.
Result<void> save_staged_state(Backend& fast, const StagedState& state);

}  // namespace penstock
