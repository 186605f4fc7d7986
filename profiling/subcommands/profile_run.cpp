// `penstock profile run [-o SESSION] [--trace] -- COMMAND...`: runs a program and records its I/O.
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <system_error>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/ranks/module.hpp"
#include "io_backends/core/system/durable_file.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/units.hpp"
#include "io_backends/core/utc_time.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session_files.hpp"
#include "profiling/session/session_summary.hpp"
#include "profiling/spans/span_log.hpp"
#include "profiling/subcommands/profile_arguments.hpp"
#include "profiling/subcommands/program_check.hpp"
#include "profiling/subcommands/watched_run.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// The exit codes with which shells report that a program cannot be executed, or does not exist.
constexpr int kNotExecutable = 126;
constexpr int kNotFound = 127;

void print_message(std::string_view text) {
  print_text(fmt::format("penstock profile: {}\n", text), stderr);
}

// Returns the command to run: all words after "--", or the arguments of `profile run` if there is no "--".
std::vector<std::string> command_of(const CommandContext& context) {
  const auto separator = std::find(context.argv.begin(), context.argv.end(), "--");
  if (separator != context.argv.end()) return {separator + 1, context.argv.end()};
  return {context.positionals.begin(), context.positionals.end()};
}

Result<std::string> preloadable_library() {
  PENSTOCK_ASSIGN(std::string path, profile_library());
  if (path.find_first_of(" :$") != std::string::npos)
    return make_error(Errc::unsupported,
                      "'{}' cannot be preloaded: LD_PRELOAD allows no space, ':' or '$' in a path; set "
                      "PENSTOCK_PROFILE_LIBRARY to a copy or link elsewhere",
                      path);
  return path;
}

std::vector<std::string> environment_with(const std::string& library, const fs::path& folder, bool trace,
                                          std::optional<uint64_t> trace_limit, uint64_t every) {
  std::vector<std::string> environment;
  std::string preload = library;
  for (char** at = environ; *at != nullptr; ++at) {
    const std::string_view entry = *at;
    if (entry.starts_with("LD_PRELOAD=")) {
      if (entry.size() > 11) preload.append(":").append(entry.substr(11));
    } else if (!entry.starts_with("PENSTOCK_PROFILE_SESSION=") &&
               !entry.starts_with("PENSTOCK_PROFILE_TRACE=") &&
               (!trace_limit || !entry.starts_with("PENSTOCK_PROFILE_TRACE_LIMIT=")) &&
               (every == 0 || !entry.starts_with("PENSTOCK_PROFILE_EVERY="))) {
      environment.emplace_back(entry);
    }
  }
  environment.push_back("LD_PRELOAD=" + preload);
  environment.push_back("PENSTOCK_PROFILE_SESSION=" + folder.string());
  if (trace) environment.emplace_back("PENSTOCK_PROFILE_TRACE=1");
  if (trace_limit) environment.push_back(fmt::format("PENSTOCK_PROFILE_TRACE_LIMIT={}", *trace_limit));
  if (every != 0) environment.push_back(fmt::format("PENSTOCK_PROFILE_EVERY={}", every));
  return environment;
}

// Returns why no session file can be written to the folder; nullopt if one can. The library in the program
// does not print its failures, because stderr is the program's.
std::optional<std::string> write_failure(const fs::path& folder) {
  const fs::path path = folder / ".try";
  const Fd fd(::open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!fd) return errno_error(errno, "cannot write a file to", folder.string()).message();
  const Result<void> written = write_all(fd.get(), std::string(8 * PENSTOCK_BLOCK_GRANULE, '\0'), path);
  ::unlink(path.c_str());
  return written.ok() ? std::nullopt : std::optional(written.error().message());
}

// Prints two lines: what was recorded, and how to inspect it.
void report_outcome(const fs::path& folder, const CommandContext& context) {
  const fs::path paths[] = {folder};
  const Result<Session> session = open_session(paths);
  if (!session.ok()) {
    const std::optional<std::string> failure = write_failure(folder);
    print_message(fmt::format("warning: nothing was recorded: {}; the coverage is unknown",
                              failure.value_or(session.error().message())));
    if (!failure && session.error().code == Errc::not_found)
      print_message(
          "possible causes: the program removed LD_PRELOAD from its environment, dropped its privileges "
          "before its first call, or executed a static or set-user-ID program");
    return;
  }
  const FileSums sums(*session);
  const SessionSummary summary = summarise(*session, sums, {});
  std::string text =
      fmt::format("{}, {}: {} read, {} written", count_of(session->processes.size(), "process", "processes"),
                  count_of(summary.included.files, "file"),
                  format_bytes(double(summary.included.all.bytes_read), context.output),
                  format_bytes(double(summary.included.all.bytes_written), context.output));
  text += "; coverage: " + coverage_summary_text(*session, summary.coverage, context.output);
  if (session->unread_files > 0)
    text += fmt::format("; {} cannot be read completely", count_of(session->unread_files, "file"));
  if (const uint64_t lost = summary.drops.records + summary.drops.operations; lost > 0)
    text += fmt::format("; {} not counted", count_of(lost, "operation"));
  if (summary.drops.segments > 0)
    text += fmt::format("; {} dropped from the trace", count_of(summary.drops.segments, "call"));
  if (!session->unwatched.empty())
    text += fmt::format("; {} could not be profiled", count_of(session->unwatched.size(), "program"));
  if (const std::string running = still_running_text(summary.coverage); !running.empty())
    text += "; " + running;
  print_message(text);
  print_message("to show the profile: penstock profile report " + shell_word(folder.string()));
}

int exit_code_of(const Error& error) {
  print_message(error.message());
  return error.code == Errc::not_found ? kNotFound : kNotExecutable;
}

Result<int> run_run(const CommandContext& context) {
  const std::vector<std::string> command = command_of(context);
  if (command.empty())
    return make_error(Errc::invalid_argument,
                      "'run' needs a COMMAND: penstock profile run -- COMMAND [arguments...]");
  const Result<std::string> program = find_program(command.front());
  if (!program.ok()) return exit_code_of(program.error());
  if (const Result<void> watchable = check_watchable(*program); !watchable.ok()) {
    if (watchable.error().code == Errc::invalid_argument) return watchable.error();
    return exit_code_of(watchable.error());
  }
  PENSTOCK_ASSIGN(const std::string library, preloadable_library());
  PENSTOCK_ASSIGN(const auto trace_limit, trace_limit_of(context.options));
  const Result<fs::path> new_folder = make_session_folder(session_name_of(context.options));
  if (!new_folder.ok()) return make_error(Errc::invalid_argument, new_folder.error().message());
  const fs::path& folder = *new_folder;
  SessionNote note = new_note(context.options, command);
  PENSTOCK_TRY(write_note(folder, note));
  const auto every = context.options.given("every") ? uint64_t(context.options.integer("every")) : 0;
  const auto on_end = [&](uint32_t pid) {
    penstock_kernel_io kernel_end{};
    if (!read_kernel_io(pid, kernel_end)) return;
    const int64_t now_ns = span_ns(std::chrono::steady_clock::now());
    if (const Result<void> done = complete_process_file(folder, pid, kernel_end, now_ns); !done.ok())
      warn(done.error().message());
  };
  const Result<int> code = run_watched(
      *program, command, environment_with(library, folder, note.trace, trace_limit, every), on_end);
  if (!code.ok()) return exit_code_of(code.error());
  note.ended = utc_now();
  note.exit_code = *code;
  if (const auto files = session_files(folder); files.ok()) note.process_files = files->size();
  update_note(folder, note);
  report_outcome(folder, context);
  return *code;
}

constexpr OptionSpec kRunOptions[] = {
    output_option("PATH", "the session's folder (default: penstock-profile-TIME-PID)"),
    kIncludeOption,
    kExcludeOption,
    kTraceOption,
    kTraceLimitOption,
    {.name = "every",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help =
         "start a new window every N steps (the program must call penstock_profile_step() or write spans)",
     .group = "Windows",
     .at_least = 1},
};

}  // namespace

extern const CommandInfo profile_run;
const CommandInfo profile_run{
    .name = "profile run",
    .summary = "run a program and profile it and every process that it starts",
    .options = kRunOptions,
    .run = &run_run,
    .synopsis = "penstock profile run [-o SESSION] [--trace] [options] -- COMMAND...",
    .examples = {"penstock profile run -o session -- python train.py   # exits as the program does",
                 "penstock profile run --trace -- ./simulation   # records every call"},
    .arguments = "[COMMAND]...",
};

}  // namespace penstock
