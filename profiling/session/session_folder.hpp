// Creates the folder of a session, and reads and writes its session.json. In that file, `profile run`,
// `attach` and `detach` note how the recording started and how it ended. A session without this file can
// still be read.
#pragma once

#include <filesystem>
#include <string>
#include <vector>

#include "io_backends/core/json.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct SessionNote {
  std::vector<std::string> command;
  std::vector<std::string> include;
  std::vector<std::string> exclude;
  bool trace = false;
  std::string started;  // UTC, ISO 8601
  // when the run ended (UTC), or when the user detached (exit_code is then -1); "" if this is not known
  std::string ended;
  // how many session files there were when the run ended; 0: not known. Fewer later: some are missing
  uint64_t process_files = 0;
  int exit_code = -1;  // 128 + signal if a signal ended the program; -1: not known
};

// Returns a name with the time and the process id: "penstock-profile-20261120T093000Z-4711".
std::string default_session_name();

// Creates the folder with mode 0700, or uses an empty one and sets its mode to 0700. Returns the absolute
// path. Errors: already_exists if the folder is not empty (the message has a remedy) or is not a folder;
// not_found if its parent does not exist.
Result<std::filesystem::path> make_session_folder(const std::filesystem::path& wanted);

// Writes session.json with mode 0600. On an error an existing session.json stays as it was.
Result<void> write_note(const std::filesystem::path& folder, const SessionNote& note);
// Returns an empty note if session.json does not exist or cannot be read.
SessionNote read_note(const std::filesystem::path& folder);

}  // namespace penstock
