// `penstock profile top [PID...|SESSION...]`: shows again and again what running programs read and write.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <memory>
#include <set>
#include <utility>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "profiling/live/recording_folders.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/report/session_top.hpp"
#include "profiling/session/process_number.hpp"
#include "profiling/subcommands/profile_arguments.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr size_t kDefaultTopRows = 20;

Result<std::vector<fs::path>> folders_of(ProfileArguments arguments) {
  std::set<fs::path> folders;
  for (const std::string& argument : arguments) {
    if (!is_process_number(argument)) {
      folders.insert(argument);
      continue;
    }
    PENSTOCK_ASSIGN(const int pid, process_number(argument));
    fs::path folder = recording_folder_of(uint32_t(pid));
    if (std::error_code failed; folder.empty() || !fs::is_directory(folder, failed)) {
      // The folder of the process was not found. If the process is not watched, this returns the error that
      // says why.
      PENSTOCK_ASSIGN(const RecordingProcess process, recording_process(pid));
      folder = fs::path(process.file).parent_path();
    }
    folders.insert(std::move(folder));
  }
  if (arguments.empty()) {
    PENSTOCK_ASSIGN(const std::vector<std::string> found, recording_folders());
    folders.insert(found.begin(), found.end());
  }
  if (folders.empty())
    return make_error(
        Errc::not_found,
        "no process is being profiled on this machine; start one with 'penstock profile run -- COMMAND'");
  return std::vector<fs::path>(folders.begin(), folders.end());
}

void print_change(const CommandContext& context, const SessionProgress* previous,
                  const SessionProgress& current) {
  const Change change = change_of(previous, current, row_limit_of(context.options, kDefaultTopRows));
  std::string text;
  if (context.output.json) {
    print_json(change_json(current, change));
  } else {
    if (::isatty(STDOUT_FILENO) == 1 && !context.options.flag("once")) {
      text = "\x1b[H\x1b[J";
    } else if (previous != nullptr) {
      text = "\n";
    }
    text += change_text(current, change, context.output);
  }
  print_text(text);
  std::fflush(stdout);
}

Result<int> run_top(const CommandContext& context) {
  PENSTOCK_ASSIGN(const std::vector<fs::path> folders, folders_of(context.positionals));
  std::vector<std::string> folder_texts;
  for (const fs::path& folder : folders) folder_texts.push_back(folder.string());
  const SessionFilter filter = filter_of(context.options, folder_texts);
  const bool once = context.options.flag("once");
  const std::chrono::nanoseconds interval =
      std::max<std::chrono::nanoseconds>(context.options.duration("interval"), std::chrono::milliseconds(50));
  for (std::unique_ptr<SessionProgress> previous;;) {
    PENSTOCK_ASSIGN(Session session, open_session(folders));
    auto current = std::make_unique<SessionProgress>(measure_progress(std::move(session), filter));
    const bool has_ended = current->processes == 0;
    // Rates need two inspections, so --once prints nothing after the first. But if no process runs any more,
    // it prints the totals at once.
    if (!once || has_ended || previous != nullptr) print_change(context, previous.get(), *current);
    if (has_ended || (once && previous != nullptr)) return 0;
    previous = std::move(current);
    PENSTOCK_TRY(sleep_until(previous->time + interval));
  }
}

constexpr OptionSpec kTopOptions[] = {
    kIncludeOption,
    kExcludeOption,
    kAllOption,
    kTopOption,
    {.name = "once",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "print one table and exit",
     .group = "Table"},
    {.name = "interval",
     .role = OptionRole::output,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "1s",
     .help = "time between two tables",
     .group = "Table"},
};

}  // namespace

extern const CommandInfo profile_top;
const CommandInfo profile_top{
    .name = "profile top",
    .summary = "show reads and writes live",
    .options = kTopOptions,
    .run = &run_top,
    .synopsis = "penstock profile top [PID|SESSION]... [--interval TIME] [--once]",
    .examples = {"penstock profile top   # every profiled process on this machine"},
    .arguments = "[PID|SESSION]...",
};

}  // namespace penstock
