// `penstock profile report SESSION...`: shows what was recorded, as text, as JSON or as a page.
#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "profiling/report/session_json.hpp"
#include "profiling/report/session_page.hpp"
#include "profiling/report/session_report.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/report/window_report.hpp"
#include "profiling/subcommands/profile_arguments.hpp"

namespace penstock {
namespace {

constexpr size_t kDefaultRows = 20;
constexpr size_t kAllRows = SIZE_MAX / 2;

Result<int> report_json(const Session& session, const FileSums& sums, const SessionFilter& filter,
                        const CommandContext& context, size_t most_rows) {
  const std::string& by = context.options.text("by");
  const SessionReport report =
      inspect_session(session, sums, filter, by, by == "file" && most_rows == kAllRows ? 0 : most_rows);
  std::string out;
  append_session_json(out, session, report.summary);
  if (by == "window") {
    const std::vector<SessionWindow> windows = windows_of(session, filter);
    for (size_t i = 0; i < windows.size() && i < most_rows; ++i) append_window_json(out, windows[i]);
  } else if (by == "process") {
    for (size_t i = 0; i < report.processes.size() && i < most_rows; ++i)
      append_process_json(out, report.processes[i]);
  } else if (by == "file") {
    for (const FileSum& file : report.most_bytes.ranked()) append_file_json(out, file);
  } else {
    for (const RollUp& row : report.rows) append_roll_up_json(out, by, row);
  }
  print_text(out);
  if (by == "file" && most_rows == kAllRows) PENSTOCK_TRY(write_files_json(sums, filter, stdout));
  return 0;
}

void report_text(const Session& session, const FileSums& sums, const SessionFilter& filter,
                 const CommandContext& context, size_t most_rows) {
  const std::string& by = context.options.text("by");
  const SessionReport report = inspect_session(session, sums, filter, by, most_rows);
  const Output& output = context.output;
  std::string out = facts_text(session_facts(session, report.summary, filter, output)) + "\n";
  out += rows_text(size_rows(report.summary, output)) + "\n";
  if (by == "window") {
    out += rows_text(window_rows(windows_of(session, filter), most_rows, output));
  } else if (by == "process") {
    out += rows_text(process_rows(report.processes, most_rows, output));
  } else if (by != "file") {
    out += rows_text(roll_up_rows(by, report.rows, output, report.rows_not_shown));
  } else {
    out += rows_text(roll_up_rows("mount", report.mounts, output));
    out += "\nMost bytes:\n" + rows_text(file_rows(report.most_bytes, output));
    out += "\nMost time:\n" + rows_text(file_rows(report.most_time, output));
  }
  print_text(out);
}

Result<int> run_report(const CommandContext& context) {
  PENSTOCK_ASSIGN(const Session session, open_named_sessions(context.positionals));
  const SessionFilter filter = filter_of(context.options, context.positionals);
  const FileSums sums(session);
  const size_t most_rows = row_limit_of(context.options, context.output.json ? kAllRows : kDefaultRows);
  if (context.options.given("html")) {
    const std::string& file = context.options.text("html");
    PENSTOCK_TRY(check_output_outside_sessions(file, context.positionals));
    PENSTOCK_TRY(write_session_page(session, sums, filter, context.output, file));
    if (!context.output.json) {
      print_text(fmt::format("{}: {}\n", file, count_of(session.processes.size(), "process", "processes")));
      return 0;
    }
  }
  if (context.output.json) return report_json(session, sums, filter, context, most_rows);
  report_text(session, sums, filter, context, most_rows);
  return 0;
}

constexpr OptionSpec kReportOptions[] = {
    kIncludeOption,
    kExcludeOption,
    kAllOption,
    {.name = "by",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = "file|mount|process|directory|window",
     .fallback = "file",
     .help = "one row per file, mount, ...",
     .group = "Table"},
    kTopOption,
    {.name = "html",
     .role = OptionRole::output,
     .value = "FILE",
     .help = "write a single-file HTML page",
     .group = "Destination"},
};

}  // namespace

extern const CommandInfo profile_report;
const CommandInfo profile_report{
    .name = "profile report",
    .summary = "show a session: bytes, times, access patterns and coverage",
    .options = kReportOptions,
    .run = &run_report,
    .synopsis = "penstock profile report SESSION... [--by WHAT] [--top N] [--html FILE]",
    .examples = {"penstock profile report session --by mount   # bytes, times and patterns, and the coverage",
                 "penstock profile report session --html page.html   # a single-file HTML page"},
    .arguments = "[SESSION]...",
};

}  // namespace penstock
