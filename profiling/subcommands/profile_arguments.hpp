// Functions and options that several subcommands of `penstock profile` use: for the sessions and processes in
// their arguments, and for output.
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
    .help = "use only files that match: '*.jpg', '/data/*', 'train/*' ('*' also matches '/')",
    .group = kWhichFiles,
    .repeated = true};
inline constexpr OptionSpec kExcludeOption{.name = "exclude",
                                           .role = OptionRole::work,
                                           .value = "GLOB",
                                           .help = "leave out files that match",
                                           .group = kWhichFiles,
                                           .repeated = true};
inline constexpr OptionSpec kAllOption{
    .name = "all",
    .role = OptionRole::work,
    .type = OptionType::flag,
    .help =
        "also show named pipes, sockets and devices, and files read at Python start-up (.py, .pyc, .so of "
        "its library folders, /proc, /sys)",
    .group = kWhichFiles};
inline constexpr OptionSpec kTraceOption{.name = "trace",
                                         .role = OptionRole::work,
                                         .type = OptionType::flag,
                                         .help = "record every call: offset, length, start and end",
                                         .group = "Trace"};
inline constexpr OptionSpec kTraceLimitOption{
    .name = "trace-limit",
    .role = OptionRole::work,
    .type = OptionType::size,
    .value = "SIZE",
    .help =
        "size limit of the recorded calls of each process (default 256MiB; at least 128KiB; 0: no limit); at "
        "the limit, new calls replace the oldest ones, which are counted as dropped",
    .group = "Trace",
    .at_least = 0};
inline constexpr OptionSpec kTopOption{.name = "top",
                                       .role = OptionRole::output,
                                       .type = OptionType::integer,
                                       .value = "N",
                                       .help = "number of rows (default: 20 in tables, all with --json)",
                                       .group = "Table",
                                       .at_least = 1};
constexpr OptionSpec output_option(std::string_view value, std::string_view help) {
  return {.name = "output",
          .role = OptionRole::output,
          .value = value,
          .help = help,
          .group = "Destination",
          .alias = "o"};
}

// Returns the value of --top (the most rows of a table), or `otherwise` if it is not given.
size_t row_limit_of(const Options& options, size_t otherwise);
// Returns the folder for a new session: the value of --output, or a default name.
std::string session_name_of(const Options& options);
// Returns the content of session.json for a run or an attach that begins now.
SessionNote new_note(const Options& options, std::vector<std::string> command);
// Writes session.json. A failure is only a warning, because a session can be read without it.
void update_note(const std::filesystem::path& folder, const SessionNote& note);

// Opens the sessions. Prints a warning for each file that cannot be read.
Result<Session> open_named_sessions(ProfileArguments arguments);

// Checks that the output cannot overwrite files of a session. Error: invalid_argument if `output` is the
// folder of one of the sessions or is inside it.
Result<void> check_output_outside_sessions(const std::string& output, ProfileArguments sessions);

// Returns the filter from --include, --exclude and --all. If none of them is given, returns the filter that
// was given to `profile run` or `attach` and is in session.json.
SessionFilter filter_of(const Options& options, ProfileArguments arguments);

// Parses the argument of a subcommand that accepts only a PID.
Result<int> parse_pid(const std::string& argument);

// Returns the absolute path of the profiler's library: libpenstock_profile.so, or the file that the variable
// PENSTOCK_PROFILE_LIBRARY names.
Result<std::string> profile_library();
// Returns the value of --trace-limit in bytes, where 0 means no limit. nullopt if the option is not given.
// Error: invalid_argument for a limit of at least 1 byte and less than 128 KiB.
Result<std::optional<uint64_t>> trace_limit_of(const Options& options);

// Prints a line and a newline to stdout.
void print_line(std::string_view text);

// Names a process for people: "rank 0, process 4711 (python train.py)".
std::string process_text(const RecordingProcess& process);
Json process_json(const RecordingProcess& process);

}  // namespace penstock
