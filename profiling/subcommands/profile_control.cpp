// penstock profile status PID|SESSION... | trace on|off PID|SESSION... [--for TIME] | snapshot PID|SESSION
#include <fmt/format.h>
#include <signal.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "profiling/attach/target.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/live/session_snapshot.hpp"
#include "profiling/live/trace_window.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/process_number.hpp"
#include "profiling/session/session_files.hpp"
#include "profiling/session/session_folder.hpp"
#include "profiling/subcommands/profile_subcommands.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;
using std::chrono::steady_clock;

void print(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  std::fwrite(line.data(), 1, line.size(), stdout);
}
void print_json(const Json& object) {
  print(object.dump(-1, ' ', false, Json::error_handler_t::replace));
}

// Which words say how a process is watched.
std::string_view start_reason_text(std::uint32_t started) {
  switch (started) {
    case PENSTOCK_BEGUN_PROCESS:
      return "watched since it began";
    case PENSTOCK_BEGUN_ATTACHED:
      return "attached";
    case PENSTOCK_BEGUN_CALLED:
      return "in a window of its own";
    default:
      return "watched, between windows";
  }
}

// "rank 0, process 4711 (python train.py)".
std::string name_of(const RecordingProcess& process) {
  constexpr std::size_t kMost = 60;
  std::string command = printable_path(process.command.substr(0, kMost));
  if (process.command.size() > kMost) command += "...";
  return fmt::format("{}process {} ({}){}", process.rank < 0 ? "" : fmt::format("rank {}, ", process.rank),
                     process.pid, command, process.here ? "" : fmt::format(" on '{}'", process.host));
}

Json json_of(const RecordingProcess& process) {
  return Json{{"pid", process.pid},
              {"rank", process.rank < 0 ? Json(nullptr) : Json(process.rank)},
              {"host", process.host},
              {"command", process.command},
              {"session", fs::path(process.file).parent_path().string()},
              {"trace", process.trace},
              {"trace_limit", process.trace_bytes}};
}

// --- status

std::string kernel_name(int pid) {
  std::string name;
  std::ifstream in(fmt::format("/proc/{}/comm", pid));
  std::getline(in, name);
  return printable_path(name);
}

Result<void> report_pid(const CommandContext& context, const std::string& word) {
  PENSTOCK_ASSIGN(const int pid, process_number(word));
  const Result<RecordingProcess> process = recording_process(pid);
  const Result<Target> target = Target::look(pid);
  // What cannot be attached to, as it is stopped or static, has a status all the same.
  if (!process.ok() && !target.ok() && target.error().code != Errc::invalid_argument &&
      target.error().code != Errc::busy)
    return target.error();
  const auto removed = process.ok() || !target.ok() ? std::nullopt : removed_session(*target);
  const bool idle = !process.ok() && !removed && target.ok() && target->has_library();
  std::string how = "not watched";
  if (process.ok()) {
    how = start_reason_text(process->started);
  } else if (removed) {
    how = start_reason_text(removed->header.begun);
  } else if (idle) {
    how = "not watched: the library is loaded and lies idle";
  } else if (!target.ok()) {
    how += "; " + target.error().message();
  }
  const std::string folder = process.ok() ? fs::path(process->file).parent_path().string()
                             : removed    ? fs::path(removed->file).parent_path().string()
                                          : "";
  const bool trace = process.ok() && process->trace;
  const std::string name = target.ok() ? target->name() : kernel_name(pid);
  if (context.output.json) {
    print_json(Json{{"pid", pid},
                    {"name", name},
                    {"watched", process.ok() || removed},
                    {"how", how},
                    {"session", folder},
                    {"session_gone", removed.has_value()},
                    {"trace", trace},
                    {"trace_limit", process.ok() ? process->trace_bytes : 0},
                    {"since_ns", process.ok() ? process->since_ns : 0},
                    {"library_loaded", idle || process.ok() || removed}});
  } else if (removed) {
    print(fmt::format("process {} ({}): {}, but {}", pid, name, how, session_gone_text(pid, *removed)));
  } else {
    print(fmt::format(
        "process {} ({}): {}{}", pid, name, how,
        folder.empty() ? "" : fmt::format("; session '{}'{}", folder, trace ? ", every call is kept" : "")));
  }
  return success();
}

Result<void> report_session(const CommandContext& context, const std::string& word) {
  PENSTOCK_ASSIGN(const TraceTargets targets, trace_targets(std::span(&word, 1)));
  PENSTOCK_ASSIGN(const std::vector<RecordingProcess> processes, recording_processes(targets.folders[0]));
  if (processes.empty() && !context.output.json) print(fmt::format("nothing runs now in '{}'", word));
  for (const RecordingProcess& process : processes) {
    if (context.output.json) {
      Json row = json_of(process);
      row["watched"] = true;
      row["how"] = start_reason_text(process.started);
      row["since_ns"] = process.since_ns;
      print_json(row);
    } else {
      print(fmt::format("{}: {}, {}", name_of(process), start_reason_text(process.started),
                        process.trace ? "every call is kept" : "calls are counted"));
    }
  }
  return success();
}

// --- trace

// "up to 256 MiB of calls, then the oldest give way".
std::string limit_text(const RecordingProcess& process, const Output& output) {
  if (process.trace_bytes == 0) return "without a limit";
  return fmt::format("at most {} of them", format_bytes(static_cast<double>(process.trace_bytes), output));
}

Result<int> switch_now(const CommandContext& context, const TraceTargets& targets, bool on) {
  PENSTOCK_ASSIGN(const std::vector<SwitchedProcess> processes, switch_trace(targets, on));
  int code = 0;
  for (const SwitchedProcess& one : processes) {
    if (!one.failed.empty()) {
      code = 1;
      warn(fmt::format("{}: {}", name_of(one.process), one.failed));
    }
    if (context.output.json) {
      Json row = json_of(one.process);
      row["changed"] = one.changed;
      row["ended"] = one.ended;
      row["failed"] = one.failed;
      print_json(row);
    } else if (one.ended) {
      print(fmt::format("{}: it has ended", name_of(one.process)));
    } else if (one.failed.empty() && on) {
      print(fmt::format("{}: every call is kept{}, {}", name_of(one.process),
                        one.changed ? " from now on" : " as before",
                        limit_text(one.process, context.output)));
    } else if (one.failed.empty()) {
      print(fmt::format("{}: calls are {} counted", name_of(one.process),
                        one.changed ? "from now on only" : "as before only"));
    }
  }
  return code;
}

double seconds_of(const TracedProcess& one) {
  return one.from_ns == 0 ? 0 : static_cast<double>(one.to_ns - one.from_ns) / 1e9;
}

int label_window(const CommandContext& context, const TraceWindow& window) {
  int code = 0;
  for (const TracedProcess& one : window.processes()) {
    if (!one.failed.empty()) {
      code = 1;
      warn(fmt::format("{}: {}", name_of(one.process), one.failed));
    }
    if (context.output.json) {
      Json row = json_of(one.process);
      row["changed"] = one.from_ns != 0;
      row["ended"] = one.ended;
      row["failed"] = one.failed;
      row["from_ns"] = one.from_ns;
      row["to_ns"] = one.from_ns == 0 ? 0 : one.to_ns;
      row["kept_s"] = seconds_of(one);
      print_json(row);
    } else if (one.was_on) {
      print(fmt::format("{}: every call is kept as before", name_of(one.process)));
    } else if (one.from_ns != 0) {
      print(fmt::format("{}: every call was kept for {:.2f} s{}", name_of(one.process), seconds_of(one),
                        one.ended ? "; then it ended" : ""));
    } else if (one.ended) {
      print(fmt::format("{}: it has ended", name_of(one.process)));
    }
  }
  return code;
}

Result<int> trace_for(const CommandContext& context, TraceTargets targets, std::chrono::nanoseconds time) {
  constexpr auto kOften = std::chrono::milliseconds(50);
  constexpr int kShare = 10;  // a look takes at most such a part of the time
  end_with_terminal();
  const auto begin = steady_clock::now();
  TraceWindow window(std::move(targets));
  bool stopped = false;
  {
    Progress progress(context.output.progress, "tracing",
                      static_cast<std::uint64_t>(std::chrono::ceil<std::chrono::seconds>(time).count()), "s");
    std::uint64_t shown = 0;
    do {
      const auto looks = steady_clock::now();
      PENSTOCK_TRY(window.look());
      const auto now = steady_clock::now();
      const auto passed =
          static_cast<std::uint64_t>(std::chrono::floor<std::chrono::seconds>(now - begin).count());
      progress.set_note(count_of(window.running(), "process", "processes"));
      progress.advance(passed - shown);
      shown = passed;
      const auto pause = std::max<steady_clock::duration>(kOften, kShare * (now - looks));
      stopped = !sleep_until(std::min(begin + time, now + pause)).ok();
    } while (!stopped && !window.over() && steady_clock::now() < begin + time);
    window.end();
  }
  const int code = label_window(context, window);
  return stopped ? 1 : code;
}

}  // namespace

void end_with_terminal() {
  struct sigaction before {};
  if (::sigaction(SIGHUP, nullptr, &before) != 0 || before.sa_handler == SIG_IGN) return;
  struct sigaction action {};
  action.sa_handler = [](int signal) { simulate_interrupt(signal); };
  ::sigaction(SIGHUP, &action, nullptr);
}

Result<int> profile_status(const CommandContext& context, ProfileArguments arguments) {
  if (arguments.empty())
    return make_error(Errc::invalid_argument,
                      "'status' takes processes or sessions: penstock profile status 4711");
  for (const std::string& argument : arguments)
    PENSTOCK_TRY(is_process_number(argument) ? report_pid(context, argument)
                                             : report_session(context, argument));
  return 0;
}

Result<int> profile_trace(const CommandContext& context, ProfileArguments arguments) {
  if (arguments.size() < 2 || (arguments[0] != "on" && arguments[0] != "off"))
    return make_error(Errc::invalid_argument,
                      "'trace' takes on or off, and processes or sessions: penstock profile trace on 4711, "
                      "penstock profile trace on SESSION --for 10s");
  const bool on = arguments[0] == "on";
  const bool limited = context.options.given("for");
  if (limited && (!on || context.options.duration("for") <= std::chrono::nanoseconds(0)))
    return make_error(Errc::invalid_argument, "--for is for 'trace on', and above 0: --for 10s");
  PENSTOCK_ASSIGN(TraceTargets targets, trace_targets(arguments.subspan(1)));
  if (context.options.given("rank")) {
    if (targets.folders.empty())
      return make_error(Errc::invalid_argument, "--rank chooses among the processes of a SESSION");
    targets.ranks = context.options.list("rank");
  }
  if (limited) return trace_for(context, std::move(targets), context.options.duration("for"));
  return switch_now(context, targets, on);
}

Result<int> profile_snapshot(const CommandContext& context, ProfileArguments arguments) {
  if (arguments.size() != 1)
    return make_error(Errc::invalid_argument,
                      "'snapshot' takes one process or session: penstock profile snapshot 4711 -o now");
  const std::string& wanted = context.options.text("output");
  const fs::path to = wanted.empty() ? default_session_name() : wanted;
  std::string whose;
  if (is_process_number(arguments[0])) {
    PENSTOCK_ASSIGN(const int pid, process_number(arguments[0]));
    PENSTOCK_ASSIGN(const RecordingProcess process, recording_process(pid));
    PENSTOCK_TRY(snapshot_process(process, to));
    whose = fmt::format("process {}", pid);
  } else {
    PENSTOCK_ASSIGN(const TraceTargets targets, trace_targets(arguments));
    PENSTOCK_TRY(snapshot_session(targets.folders[0], to));
    PENSTOCK_ASSIGN(const std::vector<RecordingProcess> running, recording_processes(targets.folders[0]));
    if (running.empty())
      note(fmt::format("nothing runs now in '{}': what it has is copied as it is", arguments[0]));
    whose = fmt::format("all of '{}'", arguments[0]);
  }
  if (context.output.json) {
    PENSTOCK_ASSIGN(const std::vector<fs::path> files, session_files(to));
    std::error_code failed;
    const fs::path absolute = fs::absolute(to, failed);
    if (failed) return errno_error(failed.value(), "cannot look at the snapshot", to.string());
    print_json(Json{
        {"session", absolute.lexically_normal().string()}, {"of", arguments[0]}, {"files", files.size()}});
  } else {
    print(fmt::format("what {} did up to now is in '{}'; 'penstock profile report {}' shows it", whose,
                      to.string(), to.string()));
  }
  return 0;
}

}  // namespace penstock
