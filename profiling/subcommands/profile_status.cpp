// `penstock profile status PID|SESSION...`: says whether and how processes are recorded.
#include <fmt/format.h>

#include <filesystem>
#include <fstream>
#include <string_view>

#include "io_backends/core/cli/print.hpp"
#include "profiling/attach/target.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/live/trace_window.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/process_number.hpp"
#include "profiling/session/session_coverage.hpp"
#include "profiling/subcommands/profile_arguments.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// Describes how the recording of a process began.
std::string_view start_reason_text(uint32_t start_reason) {
  switch (start_reason) {
    case PENSTOCK_START_REASON_PROCESS:
      return "profiled since it started";
    case PENSTOCK_START_REASON_ATTACHED:
      return "attached";
    case PENSTOCK_START_REASON_CALLED:
      return "profiled, in a window";
    default:
      return "profiled, between windows";
  }
}

std::string process_comm(int pid) {
  std::string name;
  std::ifstream in(fmt::format("/proc/{}/comm", pid));
  std::getline(in, name);
  return printable_path(name);
}

Result<void> report_pid(const CommandContext& context, const std::string& word) {
  PENSTOCK_ASSIGN(const int pid, process_number(word));
  const Result<RecordingProcess> process = recording_process(pid);
  const Result<Target> target = Target::inspect(pid);
  // Prints the status also of a process to which a user cannot attach (it is stopped, or linked statically):
  // this is no error here.
  if (!process.ok() && !target.ok() && target.error().code != Errc::invalid_argument &&
      target.error().code != Errc::busy)
    return target.error();
  const auto removed = process.ok() || !target.ok() ? std::nullopt : removed_session(*target);
  const bool is_idle = !process.ok() && !removed && target.ok() && target->has_library();
  std::string state_text = "not being profiled";
  if (process.ok()) {
    state_text = start_reason_text(process->start_reason);
  } else if (removed) {
    state_text = start_reason_text(removed->header.begun);
  } else if (is_idle) {
    state_text = "not being profiled: the library is loaded but inactive";
  } else if (!target.ok()) {
    state_text += "; " + target.error().message();
  }
  const std::string folder = process.ok() ? fs::path(process->file).parent_path().string()
                             : removed    ? fs::path(removed->file).parent_path().string()
                                          : "";
  const bool is_traced = process.ok() && process->trace;
  const std::string name = target.ok() ? target->name() : process_comm(pid);
  if (context.output.json) {
    print_json(Json{{"pid", pid},
                    {"name", name},
                    {"watched", process.ok() || removed},
                    {"how", state_text},
                    {"session", folder},
                    {"session_gone", removed.has_value()},
                    {"trace", is_traced},
                    {"trace_limit", process.ok() ? process->trace_limit_bytes : 0},
                    {"since_ns", process.ok() ? process->file_begin_ns : 0},
                    {"library_loaded", is_idle || process.ok() || removed}});
  } else if (removed) {
    print_line(
        fmt::format("process {} ({}): {}, but {}", pid, name, state_text, session_gone_text(pid, *removed)));
  } else {
    print_line(fmt::format("process {} ({}): {}{}", pid, name, state_text,
                           folder.empty() ? ""
                                          : fmt::format("; session '{}'{}", folder,
                                                        is_traced ? ", every call is recorded" : "")));
  }
  return success();
}

Result<void> report_session(const CommandContext& context, const std::string& word) {
  PENSTOCK_ASSIGN(const TraceTargets targets, trace_targets(std::span(&word, 1)));
  PENSTOCK_ASSIGN(const std::vector<RecordingProcess> processes, recording_processes(targets.folders[0]));
  if (!context.output.json) {
    const Result<Session> session = open_session(targets.folders);
    const bool is_known = session.ok() || session.error().code == Errc::not_found;
    SessionCoverage children;
    children.waiting_children = session.ok() ? waiting_children(*session) : 0;
    if (!is_known)
      print_line("forked children unknown: " + session.error().message());
    else if (children.waiting_children > 0)
      print_line(still_running_text(children));
    else if (processes.empty())
      print_line(fmt::format("no process of '{}' is running", word));
  }
  for (const RecordingProcess& process : processes) {
    if (context.output.json) {
      Json row = process_json(process);
      row["watched"] = true;
      row["how"] = start_reason_text(process.start_reason);
      row["since_ns"] = process.file_begin_ns;
      print_json(row);
    } else {
      print_line(fmt::format("{}: {}, {}", process_text(process), start_reason_text(process.start_reason),
                             process.trace ? "every call is recorded" : "calls are counted"));
    }
  }
  return success();
}

Result<int> run_status(const CommandContext& context) {
  for (const std::string& argument : context.positionals)
    PENSTOCK_TRY(is_process_number(argument) ? report_pid(context, argument)
                                             : report_session(context, argument));
  return 0;
}

}  // namespace

extern const CommandInfo profile_status;
const CommandInfo profile_status{
    .name = "profile status",
    .summary = "show whether and how processes are profiled",
    .run = &run_status,
    .synopsis = "penstock profile status PID|SESSION...",
    .examples = {"penstock profile status 4711   # is it profiled, and how?"},
    .arguments = "PID|SESSION...",
};

}  // namespace penstock
