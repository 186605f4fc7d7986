// The folder of a session, and what `profile run` notes in it besides what the processes write: session.json,
// which says how the run was started and how it ended. Readers get on without it.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "io_backends/core/result.hpp"

namespace penstock {

struct SessionNote {
  std::vector<std::string> command;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  bool trace = false;
  std::string started;  // UTC, ISO 8601
  std::string ended;    // "" while it runs, or the end is unknown; without an exit code: it was detached from
  int exit_code = -1;   // 128 + signal where one ended it; -1: not yet
};

// "penstock-profile-20261120T093000Z-4711".
std::string default_session_name();

// Makes it, mode 0700, or takes an empty one and makes that its mode. already_exists for one that is not
// empty, with what to do. The path is absolute.
Result<std::filesystem::path> make_session_folder(const std::filesystem::path& wanted);

// Whole or not at all, mode 0600.
Result<void> write_note(const std::filesystem::path& folder, const SessionNote& note);
// Nothing where there is none, or none that can be read.
SessionNote read_note(const std::filesystem::path& folder);

}  // namespace penstock
