// The parts that the subcommands of `penstock profile` share: options, the sessions and processes in their
// arguments, and output.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/session/session.hpp"
#include "profiling/session/session_filter.hpp"
#include "profiling/session/session_folder.hpp"
#include "results/record/record.hpp"

namespace penstock {

using ProfileArguments = std::span<const std::string>;

inline constexpr std::string_view kWhichFiles = "Which files";
inline constexpr OptionSpec kIncludeOption{
    .name = "include",
    .role = OptionRole::work,
    .value = "GLOB",
    .help = "only files that match: '*.jpg', '/data/*', 'train/*' ('*' stands for '/' as well)",
    .group = kWhichFiles,
    .repeated = true};
inline constexpr OptionSpec kExcludeOption{.name = "exclude",
                                           .role = OptionRole::work,
                                           .value = "GLOB",
                                           .help = "not these",
                                           .group = kWhichFiles,
                                           .repeated = true};
inline constexpr OptionSpec kAllOption{
    .name = "all",
    .role = OptionRole::work,
    .type = OptionType::flag,
    .help =
        "also pipes, sockets and devices that have a name, and what Python reads to start (.py, .pyc, .so of "
        "its library folders, /proc, /sys)",
    .group = kWhichFiles};
inline constexpr OptionSpec kTraceOption{.name = "trace",
                                         .role = OptionRole::work,
                                         .type = OptionType::flag,
                                         .help = "keep every single call: offset, length, begin and end",
                                         .group = "Trace"};
inline constexpr OptionSpec kTraceLimitOption{.name = "trace-limit",
                                              .role = OptionRole::work,
                                              .type = OptionType::size,
                                              .value = "SIZE",
                                              .help =
                                                  "of kept calls in a process's file (256MiB if not given, "
                                                  "at least 128KiB, 0 for no limit): the oldest "
                                                  "give way to the newest and are counted",
                                              .group = "Trace",
                                              .at_least = 0};
inline constexpr OptionSpec kTopOption{.name = "top",
                                       .role = OptionRole::output,
                                       .type = OptionType::integer,
                                       .value = "N",
                                       .help = "rows (tables: 20, --json: all, if not given)",
                                       .group = "Table",
                                       .at_least = 1};
constexpr OptionSpec output_option(std::string_view value, std::string_view help) {
  return {.name = "output",
          .role = OptionRole::output,
          .value = value,
          .help = help,
          .group = "Where to",
          .alias = "o"};
}

// The value of --top, or `otherwise` if it is not given.
size_t row_limit_of(const Options& options, size_t otherwise);
// The folder of a new session: --output, or a default name.
std::string session_name_of(const Options& options);
// The note of a run or an attach that begins at this moment.
SessionNote new_note(const Options& options, std::vector<std::string> command);
// Writes session.json. A failure is only a warning, because a session can be read without it.
void update_note(const std::filesystem::path& folder, const SessionNote& note);

// Opens the sessions. Prints a warning for each file that cannot be read.
Result<Session> open_named_sessions(ProfileArguments arguments);

// Error: invalid_argument if the output is a session's folder or is inside it. It could overwrite the
// session's files.
Result<void> check_output_outside_sessions(const std::string& output, ProfileArguments sessions);

// The filter from --include, --exclude and --all. If none is given, the filter that `profile run` noted.
SessionFilter filter_of(const Options& options, ProfileArguments arguments);

// Parses the argument of a subcommand that accepts only a PID.
Result<int> parse_pid(const std::string& argument);

// The absolute path of libpenstock_profile.so, or of the file in PENSTOCK_PROFILE_LIBRARY.
Result<std::string> profile_library();
// The value of --trace-limit in bytes, if given; 0: no limit. Error: invalid_argument for a limit between 1
// byte and 128 KiB.
Result<std::optional<uint64_t>> trace_limit_of(const Options& options);

// Makes SIGHUP (a closed terminal) end the command as Ctrl-C does, for commands that must undo something at
// the end.
void stop_on_hangup();

// Prints a line and a newline to stdout.
void print_line(std::string_view text);

// Example: "rank 0, process 4711 (python train.py)".
std::string process_text(const RecordingProcess& process);
Json process_json(const RecordingProcess& process);

}  // namespace penstock
