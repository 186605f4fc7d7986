// Records what `stage apply` has done on a fast tier. With this record, an interrupted apply can continue,
// and `stage revert` removes only files that apply has copied. The record is a file on the fast tier, in
// Penstock's own folder.
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
  // Files of the plan that were on the fast tier before the first apply, sorted. Revert never removes them.
  std::vector<std::string> earlier_files{};
  std::vector<std::string> new_folders{};  // folders that did not exist before the first apply, parents first
  std::vector<std::string> link_farms{};   // absolute paths of the link farms that apply has started to make
  std::map<std::string, PublishedObject> copied{};
  // True while an apply runs, and after one was killed before it saved its state. Then there may be copies
  // that `copied` does not list.
  bool may_have_unlisted_copies = false;

  bool is_earlier_file(const std::string& name) const;
  // Call this if a file of `earlier_files` no longer exists. A file that has this name later was copied by
  // apply.
  void remove_earlier_file(const std::string& name);
  bool operator==(const StagedState&) const = default;
};

// The state as one line of JSON that ends with its checksum (sealed_object.hpp).
std::string staged_state_text(const StagedState& state);
Result<StagedState> parse_staged_state(std::string_view text, std::string_view where);

// staged_state_name() is the name of the state's file: ".penstock/staged/<id>.json". staged_lock_name() is
// the name of the lock that `stage apply` and `stage revert` hold while they run.
std::string staged_state_name(std::string_view plan_id);
std::string staged_lock_name(std::string_view plan_id);
inline constexpr std::string_view kStagedFolder = ".penstock/staged";

// Loads the state. Fails with `not_found` if the plan was never applied on this tier.
Result<StagedState> load_staged_state(Backend& fast, std::string_view plan_id);
// Saves the state, which atomically replaces the old file. When this function returns, the new file survives
// a power cut.
Result<void> save_staged_state(Backend& fast, const StagedState& state);

}  // namespace penstock
