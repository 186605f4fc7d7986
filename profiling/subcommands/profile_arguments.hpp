// What subcommands of `penstock profile` share: options, the sessions and processes that their arguments
// name, and how they print.
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

// --top where it is given.
std::size_t rows_of(const Options& options, std::size_t otherwise);
// --output of a session that is started, or a name of its own.
std::string session_name_of(const Options& options);
// What session.json says of a run or an attach that begins now.
SessionNote first_note(const Options& options, std::vector<std::string> command);
// A session is of use without it: a warning where it cannot be written.
void update_note(const std::filesystem::path& folder, const SessionNote& note);

// With a warning for each file of them that cannot be read.
Result<Session> open_named_sessions(ProfileArguments arguments);

// invalid_argument where a file or folder that is to be written would take the place of, or lie within, what
// the sessions were written to.
Result<void> check_output_outside_sessions(const std::string& output, ProfileArguments sessions);

// --include, --exclude and --all; where none of them is given, what `profile run` was told.
SessionFilter filter_of(const Options& options, ProfileArguments arguments);

// Of a subcommand that takes a PID alone.
Result<int> only_pid(const std::string& argument);

// libpenstock_profile.so, or the one that PENSTOCK_PROFILE_LIBRARY names: absolute.
Result<std::string> profile_library();
// --trace-limit where it is given; invalid_argument for less than a file can keep to.
Result<std::optional<std::uint64_t>> trace_limit_of(const Options& options);

// From now on a terminal that goes away ends the command as Ctrl-C does: for what has to be taken back.
void end_with_terminal();

// On stdout, with a newline.
void print_line(std::string_view text);

// "rank 0, process 4711 (python train.py)".
std::string process_text(const RecordingProcess& process);
Json process_json(const RecordingProcess& process);

}  // namespace penstock
