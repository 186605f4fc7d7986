// What `stage apply` has done on a fast tier, so that it goes on where it was stopped and `stage revert`
// removes only what it brought. It is kept on that tier, in a folder of Penstock's own.
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
  std::string plan;  // its id
  // Files of the plan that were there before any apply, sorted: never to be removed.
  std::vector<std::string> found{};
  std::vector<std::string> folders{};  // that were not, parents first
  std::vector<std::string> farms{};    // absolute paths of link farms that were started
  std::map<std::string, PublishedObject> copied{};
  // Copies may be there that `copied` lacks: an apply is at work, or was killed and could not say.
  bool unsure = false;

  bool was_found(const std::string& name) const;
  void forget_found(const std::string& name);  // it is gone: what comes there is ours
  bool operator==(const StagedState&) const = default;
};

// One line of sealed JSON, as a plan is.
std::string staged_state_text(const StagedState& state);
Result<StagedState> parse_staged_state(std::string_view text, std::string_view where);

// ".penstock/staged/<id>.json", and the lock of whoever is at work on it.
std::string staged_state_name(std::string_view plan_id);
std::string staged_lock_name(std::string_view plan_id);
inline constexpr std::string_view kStagedFolder = ".penstock/staged";

// not_found where the plan was never applied there.
Result<StagedState> load_staged_state(Backend& fast, std::string_view plan_id);
// Whole or not at all, and it survives a power cut.
Result<void> save_staged_state(Backend& fast, const StagedState& state);

}  // namespace penstock
