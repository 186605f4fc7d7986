// Functions that several subcommands of `penstock profile` use.
//
// Threads: the command's main thread.
// Locks: none.
#include "profiling/subcommands/profile_arguments.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/ranks/module.hpp"
#include "io_backends/core/utc_time.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/process_number.hpp"
#include "results/record/json_members.hpp"
#include "results/record/store.hpp"

namespace penstock {

Result<void> check_output_outside_sessions(const std::string& output, ProfileArguments sessions) {
  std::error_code failed;
  const std::filesystem::path target = std::filesystem::weakly_canonical(output, failed);
  if (failed) return success();  // the path cannot be resolved; writing the output will report the error
  for (const std::string& argument : sessions) {
    const std::filesystem::path session = std::filesystem::weakly_canonical(argument, failed);
    if (!failed && std::ranges::mismatch(session, target).in1 == session.end())
      return make_error(Errc::invalid_argument, "'{}' is inside the session '{}': name a file outside it",
                        output, argument);
  }
  return success();
}

size_t row_limit_of(const Options& options, size_t otherwise) {
  return options.given("top") ? size_t(options.integer("top")) : otherwise;
}

std::string session_name_of(const Options& options) {
  return options.text("output").empty() ? default_session_name() : options.text("output");
}

SessionNote new_note(const Options& options, std::vector<std::string> command) {
  SessionNote note;
  note.command = std::move(command);
  note.include = options.texts("include");
  note.exclude = options.texts("exclude");
  note.trace = options.flag("trace");
  note.started = utc_now();
  return note;
}

void update_note(const std::filesystem::path& folder, const SessionNote& note) {
  if (const Result<void> written = write_note(folder, note); !written.ok()) warn(written.error().message());
}

Result<Session> open_named_sessions(ProfileArguments arguments) {
  if (arguments.empty())
    return make_error(Errc::invalid_argument,
                      "this needs a SESSION: the folder that 'penstock profile run' wrote");
  const std::vector<std::filesystem::path> paths(arguments.begin(), arguments.end());
  PENSTOCK_ASSIGN(Session session, open_session(paths));
  for (const std::string& argument : arguments) {
    const SessionNote note = read_note(argument);
    if (note.command.empty()) continue;
    session.exit_codes.push_back(note.exit_code);
    session.detach_times.push_back(note.exit_code < 0 ? note.ended : "");
  }
  for (const std::string& problem : session.problems) warn(problem);
  return session;
}

SessionFilter filter_of(const Options& options, ProfileArguments arguments) {
  SessionFilter filter{.include = options.texts("include"),
                       .exclude = options.texts("exclude"),
                       .all_files = options.flag("all")};
  if (!filter.include.empty() || !filter.exclude.empty() || filter.all_files) return filter;
  for (const std::string& argument : arguments) {
    const SessionNote note = read_note(argument);
    filter.include.insert(filter.include.end(), note.include.begin(), note.include.end());
    filter.exclude.insert(filter.exclude.end(), note.exclude.begin(), note.exclude.end());
  }
  return filter;
}

Result<int> parse_pid(const std::string& argument) {
  if (std::error_code failed; std::filesystem::is_directory(argument, failed))
    return make_error(Errc::invalid_argument,
                      "this needs a PID, and '{}' is a folder; if it is a session, to list its processes: "
                      "penstock profile status {}",
                      argument, shell_word(argument));
  return process_number(argument);
}

Result<std::string> profile_library() {
  std::string path;
  if (const char* const value = std::getenv("PENSTOCK_PROFILE_LIBRARY"); value != nullptr && *value != 0) {
    std::error_code failed;
    path = std::filesystem::absolute(value, failed).string();
    if (!std::filesystem::exists(path, failed))
      return make_error(Errc::not_found,
                        "PENSTOCK_PROFILE_LIBRARY names '{}', which does not exist: correct it or unset it",
                        path);
  } else {
    PENSTOCK_ASSIGN(path, module_path("libpenstock_profile.so"));
  }
  return path;
}

Result<std::optional<uint64_t>> trace_limit_of(const Options& options) {
  constexpr uint64_t kLeastLimitBytes = 8 * uint64_t{PENSTOCK_BLOCK_GRANULE};
  if (!options.given("trace-limit")) return std::nullopt;
  const uint64_t limit = options.size("trace-limit");
  if (limit != 0 && limit < kLeastLimitBytes)
    return make_error(Errc::invalid_argument, "--trace-limit must be at least 128KiB, or 0 for no limit");
  return limit;
}

void print_line(std::string_view text) {
  print_text(fmt::format("{}\n", text));
}

std::string process_text(const RecordingProcess& process) {
  constexpr size_t kMostCommandBytes = 60;
  std::string command = printable_path(process.command.substr(0, kMostCommandBytes));
  if (process.command.size() > kMostCommandBytes) command += "...";
  return fmt::format("{}process {} ({}){}", process.rank < 0 ? "" : fmt::format("rank {}, ", process.rank),
                     process.pid, command,
                     process.on_this_machine ? "" : fmt::format(" on '{}'", process.host));
}

Json process_json(const RecordingProcess& process) {
  return Json{{"pid", process.pid},
              {"rank", process.rank < 0 ? Json(nullptr) : Json(process.rank)},
              {"host", process.host},
              {"command", process.command},
              {"session", std::filesystem::path(process.file).parent_path().string()},
              {"trace", process.trace},
              {"trace_limit", process.trace_limit_bytes}};
}

}  // namespace penstock
