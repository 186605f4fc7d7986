// Switches traces in several rounds, until every target process has the wanted state. A target may end, fork
// or begin a new file between two rounds. That is why each round lists the processes again.
//
// Threads: one thread of a penstock command.
// Locks: none.
// Memory: may allocate.
// Ctrl-C: not checked here. switch_trace() and end() take about 0.5 s at most if processes keep changing
// (SwitchRounds).
#include "profiling/live/trace_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <iterator>
#include <set>
#include <thread>
#include <utility>

#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/process_number.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool same_process(const RecordingProcess& a, const RecordingProcess& b) {
  return a.pid == b.pid && a.start == b.start && a.host == b.host;
}

bool contains(const std::vector<RecordingProcess>& processes, const RecordingProcess& process) {
  return std::ranges::any_of(processes, [&](const auto& one) { return same_process(one, process); });
}

TracedProcess* find_traced(std::vector<TracedProcess>& all, const RecordingProcess& process) {
  const auto at =
      std::ranges::find_if(all, [&](const auto& one) { return same_process(one.process, process); });
  return at == all.end() ? nullptr : &*at;
}

fs::path folder_of(const RecordingProcess& process) {
  return fs::path(process.file).parent_path();
}

bool is_of_folder(const TraceTargets& targets, const RecordingProcess& process) {
  const fs::path folder = folder_of(process);
  const bool rank_is_target =
      targets.ranks.empty() ||
      (process.rank >= 0 && std::find(targets.ranks.begin(), targets.ranks.end(),
                                      static_cast<std::uint64_t>(process.rank)) != targets.ranks.end());
  return rank_is_target &&
         std::find(targets.folders.begin(), targets.folders.end(), folder) != targets.folders.end();
}

// All running processes in the targets' folders, and in the folders to which named processes write. A folder
// that cannot be read is an error at the first call. Later it is skipped.
Result<SessionProcesses> list_processes(const TraceTargets& targets, bool first) {
  std::set<fs::path> folders(targets.folders.begin(), targets.folders.end());
  for (const RecordingProcess& process : targets.processes) folders.insert(folder_of(process));
  SessionProcesses all;
  for (const fs::path& folder : folders) {
    Result<SessionProcesses> found = session_processes(folder);
    if (!found.ok() && first) return found.error();
    if (!found.ok()) continue;
    for (RecordingProcess& process : found->recording) {
      process.on_this_machine =
          process.on_this_machine ||
          contains(targets.processes, process);  // it was found through its own mappings
      all.recording.push_back(std::move(process));
    }
    std::move(found->between_files.begin(), found->between_files.end(),
              std::back_inserter(all.between_files));
  }
  return all;
}

Error no_target_error(const TraceTargets& targets) {
  std::string where;
  for (const fs::path& folder : targets.folders)
    where += fmt::format("{}'{}'", where.empty() ? "" : ", ", folder.string());
  return make_error(Errc::not_found, fmt::format("nothing runs now in {}{}", where,
                                                 targets.ranks.empty() ? "" : " of these ranks"));
}

bool is_target(const TraceTargets& targets, const RecordingProcess& process) {
  return contains(targets.processes, process) || is_of_folder(targets, process);
}

// Decides how often a session is inspected. A process copies its trace switch to its next file and to the
// children that it forks. So one round may not reach all of them, and rounds repeat until nothing was left to
// do.
class SwitchRounds {
 public:
  // True if another round is needed. `quiet`: the last round changed nothing. `between_files`: some process
  // has stopped its file and may begin another.
  bool needs_another(bool quiet, bool between_files) {
    constexpr int kLeastRounds = 3;  // least number of rounds, for a slow machine where each takes long
    constexpr auto kPause = std::chrono::milliseconds(10);
    // the limit for a process between two files: if its recording has ended, it begins no other file
    constexpr auto kPatience = std::chrono::milliseconds(500);
    ++rounds_;
    if (quiet && !between_files) return false;
    if (rounds_ >= kLeastRounds && std::chrono::steady_clock::now() - begin_ > kPatience) return false;
    if (quiet) std::this_thread::sleep_for(kPause);
    return true;
  }

 private:
  std::chrono::steady_clock::time_point begin_ = std::chrono::steady_clock::now();
  int rounds_ = 0;
};

// Returns true if something was done: the switch was changed, or the process ended or began another file
// meanwhile.
bool switch_process(std::vector<TracedProcess>& all, const RecordingProcess& process, bool on) {
  TracedProcess* const existing = find_traced(all, process);
  TracedProcess& one = existing == nullptr ? all.emplace_back() : *existing;
  one.process = process;
  one.ended = false;
  if (process.trace == on || !one.failed.empty()) return false;
  const Result<void> done = set_trace(process, on);
  one.ended = !done.ok() && done.error().code == Errc::not_found;
  one.failed = done.ok() || one.ended ? "" : done.error().message();
  if (done.ok()) one.from_ns = now_ns();
  one.process.trace = done.ok() ? on : process.trace;
  return one.failed.empty();
}

}  // namespace

Result<TraceTargets> trace_targets(std::span<const std::string> arguments) {
  TraceTargets targets;
  for (const std::string& argument : arguments) {
    if (is_process_number(argument)) {
      PENSTOCK_ASSIGN(const int pid, process_number(argument));
      PENSTOCK_ASSIGN(RecordingProcess process, recording_process(pid));
      targets.processes.push_back(std::move(process));
      continue;
    }
    std::error_code failed;
    fs::path folder = fs::absolute(argument, failed).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    if (failed || !fs::is_directory(folder, failed))
      return make_error(Errc::not_found,
                        fmt::format("'{}' is neither a process's number nor a session's folder", argument));
    targets.folders.push_back(std::move(folder));
  }
  return targets;
}

Result<std::vector<TracedProcess>> switch_trace(const TraceTargets& targets, bool on) {
  std::vector<TracedProcess> all;
  bool quiet = true;
  bool between_files = false;
  SwitchRounds rounds;
  do {
    PENSTOCK_ASSIGN(const SessionProcesses found, list_processes(targets, all.empty()));
    quiet = true;
    for (const RecordingProcess& process : found.recording)
      if (is_target(targets, process) && switch_process(all, process, on)) quiet = false;
    between_files = std::any_of(found.between_files.begin(), found.between_files.end(),
                                [&](const RecordingProcess& process) { return is_target(targets, process); });
  } while (rounds.needs_another(quiet, between_files));
  if (all.empty()) return no_target_error(targets);
  return all;
}

bool TraceWindow::inherited_from_traced(const RecordingProcess& process) const {
  const std::vector<std::uint32_t>& from = process.inherited_from;
  return std::any_of(traced_.begin(), traced_.end(), [&](const TracedProcess& one) {
    return one.process.host == process.host && one.from_ns != 0 &&
           std::find(from.begin(), from.end(), one.process.pid) != from.end();
  });
}

void TraceWindow::add_or_rearm(const RecordingProcess& process) {
  TracedProcess* one = find_traced(traced_, process);
  if (one == nullptr) {
    const bool inherited = process.trace && !first_ && inherited_from_traced(process);
    if (!inherited && !is_target(targets_, process)) return;
    one = &traced_.emplace_back();
    one->process = process;
    one->was_on = process.trace && !inherited;
    if (inherited) one->from_ns = now_ns();
    if (process.trace) return;
  } else if (one->process.file == process.file || one->was_on || process.trace) {
    // If the trace of the same file was switched off meanwhile, a user did that on purpose.
    one->process = process;
    return;
  }
  one->process = process;
  const Result<void> armed = set_trace(process, true);
  if (armed.ok()) {
    one->from_ns = one->from_ns == 0 ? now_ns() : one->from_ns;
    one->process.trace = true;
    one->failed.clear();
    // not_found: it has ended, or update() finds it again with its next file
  } else if (armed.error().code != Errc::not_found) {
    one->failed = armed.error().message();
  }
}

void TraceWindow::note_ended(const std::vector<RecordingProcess>& running) {
  for (TracedProcess& one : traced_) {
    if (contains(running, one.process)) {
      one.ended = false;
      one.to_ns = 0;
      continue;
    }
    // The process is between two files, is not watched any more, or is about to end.
    one.ended = !one.process.on_this_machine || !process_runs(one.process.pid, one.process.start);
    if (one.to_ns == 0) one.to_ns = now_ns();
  }
}

Result<void> TraceWindow::update() {
  PENSTOCK_ASSIGN(const SessionProcesses found, list_processes(targets_, first_));
  for (const RecordingProcess& process : found.recording) add_or_rearm(process);
  note_ended(found.recording);
  if (first_ && traced_.empty()) return no_target_error(targets_);
  first_ = false;
  return success();
}

std::size_t TraceWindow::running() const {
  return static_cast<std::size_t>(std::count_if(traced_.begin(), traced_.end(), [](const TracedProcess& one) {
    return !one.ended && one.failed.empty();
  }));
}

// Returns true if nothing was left to do.
bool TraceWindow::disarm_all(const std::vector<RecordingProcess>& running) {
  bool quiet = true;
  for (const RecordingProcess& process : running) {
    if (!process.trace) continue;
    TracedProcess* one = find_traced(traced_, process);
    if (one == nullptr && inherited_from_traced(process)) {
      one = &traced_.emplace_back();
      one->from_ns = process.since_ns;
    }
    if (one == nullptr || one->was_on || one->from_ns == 0) continue;
    one->process = process;
    const Result<void> disarmed = set_trace(process, false);
    one->process.trace = !disarmed.ok();
    if (disarmed.ok() || disarmed.error().code == Errc::not_found) {
      quiet = false;
    } else {
      one->failed = disarmed.error().message();
    }
  }
  return quiet;
}

// Children that have not recorded anything yet copy the trace switch from the header of a parent that has
// ended. So it is switched off there as well.
bool TraceWindow::disarm_ended() {
  bool quiet = true;
  for (TracedProcess& one : traced_) {
    if (!one.ended || one.was_on || one.from_ns == 0 || !one.process.trace) continue;
    static_cast<void>(set_trace(one.process, false));
    one.process.trace = false;
    quiet = false;
  }
  return quiet;
}

void TraceWindow::end() {
  if (ended_) return;
  ended_ = true;
  bool quiet = true;
  bool between_files = false;
  SwitchRounds rounds;
  do {
    const Result<SessionProcesses> found = list_processes(targets_, false);
    if (!found.ok()) break;
    quiet = disarm_all(found->recording);
    note_ended(found->recording);
    quiet = disarm_ended() && quiet;
    between_files = std::any_of(
        found->between_files.begin(), found->between_files.end(), [&](const RecordingProcess& process) {
          const TracedProcess* one = find_traced(traced_, process);
          return one == nullptr ? inherited_from_traced(process) : !one->was_on && one->from_ns != 0;
        });
  } while (rounds.needs_another(quiet, between_files));
  const std::int64_t now = now_ns();
  for (TracedProcess& one : traced_)
    if (one.to_ns == 0) one.to_ns = now;
}

}  // namespace penstock
