// Switches traces in several rounds, until every target process has the wanted state. A target may end, fork
// or begin a new file between two rounds. That is why each round lists the processes again.
//
// Threads: one thread of a penstock command.
// Locks: none.
// Memory: may allocate.
// Ctrl-C: not checked here. switch_trace() and end() take about 0.5 s at most if processes keep changing
// (needs_another_round()).
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

int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool same_process(const RecordingProcess& a, const RecordingProcess& b) {
  return a.pid == b.pid && a.start_ticks == b.start_ticks && a.host == b.host;
}

bool contains(const std::vector<RecordingProcess>& processes, const RecordingProcess& process) {
  return std::ranges::any_of(processes, [&](const auto& other) { return same_process(other, process); });
}

TracedProcess* find_traced(std::vector<TracedProcess>& all, const RecordingProcess& process) {
  const auto found =
      std::ranges::find_if(all, [&](const auto& traced) { return same_process(traced.process, process); });
  return found == all.end() ? nullptr : &*found;
}

fs::path folder_of(const RecordingProcess& process) {
  return fs::path(process.file).parent_path();
}

bool is_in_target_folder(const TraceTargets& targets, const RecordingProcess& process) {
  const fs::path folder = folder_of(process);
  const bool rank_is_target = targets.ranks.empty() ||
                              (process.rank >= 0 && std::find(targets.ranks.begin(), targets.ranks.end(),
                                                              uint64_t(process.rank)) != targets.ranks.end());
  return rank_is_target &&
         std::find(targets.folders.begin(), targets.folders.end(), folder) != targets.folders.end();
}

// Lists the running processes of the targets' folders, and of the folders into which the single target
// processes record. If a folder cannot be read, this is an error in the first listing (`is_first_listing`);
// later listings skip the folder.
Result<SessionProcesses> list_processes(const TraceTargets& targets, bool is_first_listing) {
  std::set<fs::path> folders(targets.folders.begin(), targets.folders.end());
  for (const RecordingProcess& process : targets.processes) folders.insert(folder_of(process));
  SessionProcesses result;
  for (const fs::path& folder : folders) {
    Result<SessionProcesses> found = session_processes(folder);
    if (!found.ok() && is_first_listing) return found.error();
    if (!found.ok()) continue;
    for (RecordingProcess& process : found->recording) {
      // trace_targets() has found the single target processes on this machine
      process.on_this_machine = process.on_this_machine || contains(targets.processes, process);
      result.recording.push_back(std::move(process));
    }
    std::move(found->between_files.begin(), found->between_files.end(),
              std::back_inserter(result.between_files));
  }
  return result;
}

Error no_target_error(const TraceTargets& targets) {
  std::string quoted_folders;
  for (const fs::path& folder : targets.folders)
    quoted_folders += fmt::format("{}'{}'", quoted_folders.empty() ? "" : ", ", folder.string());
  return make_error(Errc::not_found, "no process{1} of {0} is running", quoted_folders,
                    targets.ranks.empty() ? "" : " with these ranks");
}

bool is_target(const TraceTargets& targets, const RecordingProcess& process) {
  return contains(targets.processes, process) || is_in_target_folder(targets, process);
}

// Decides whether another round of listing and switching is needed. One round may miss processes: a process
// copies its trace switch to its next file and to the children that it forks, perhaps just before the switch
// changes. Rounds are repeated until one finds nothing to switch, or until kMostWait has passed.
// `begin` and `rounds`: when the first round began, and how many there were. `nothing_changed`: the last
// round changed nothing. `between_files`: some process has ended its file and may begin another one.
bool needs_another_round(std::chrono::steady_clock::time_point begin, int rounds, bool nothing_changed,
                         bool between_files) {
  // At least this many rounds are made, even if they take longer than kMostWait on a slow machine.
  constexpr int kLeastRounds = 3;
  constexpr auto kPause = std::chrono::milliseconds(10);
  // After this time no more rounds are made. A process that has closed its session file usually begins the
  // next file sooner, or has stopped recording.
  constexpr auto kMostWait = std::chrono::milliseconds(500);
  if (nothing_changed && !between_files) return false;
  if (rounds >= kLeastRounds && std::chrono::steady_clock::now() - begin > kMostWait) return false;
  if (nothing_changed) std::this_thread::sleep_for(kPause);
  return true;
}

// Switches the trace of `process` and notes the result in `all`. Returns true if another round is needed: the
// trace was switched, or the process ended or began another file meanwhile. Returns false if there was
// nothing to do, or if the switch failed.
bool switch_process(std::vector<TracedProcess>& all, const RecordingProcess& process, bool on) {
  TracedProcess* const existing = find_traced(all, process);
  TracedProcess& traced = existing == nullptr ? all.emplace_back() : *existing;
  traced.process = process;
  traced.ended = false;
  if (process.trace == on || !traced.error_text.empty()) return false;
  const Result<void> switched = set_trace(process, on);
  traced.ended = !switched.ok() && switched.error().code == Errc::not_found;
  traced.error_text = switched.ok() || traced.ended ? "" : switched.error().message();
  if (switched.ok()) traced.from_ns = now_ns();
  traced.process.trace = switched.ok() ? on : process.trace;
  return traced.error_text.empty();
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
    std::error_code error;
    fs::path folder = fs::absolute(argument, error).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    if (error || !fs::is_directory(folder, error))
      return make_error(Errc::not_found, "'{}' is neither a process ID nor a session folder", argument);
    targets.folders.push_back(std::move(folder));
  }
  return targets;
}

Result<std::vector<TracedProcess>> switch_trace(const TraceTargets& targets, bool on) {
  std::vector<TracedProcess> all;
  bool nothing_changed = true;
  bool between_files = false;
  const auto begin = std::chrono::steady_clock::now();
  int rounds = 0;
  do {
    PENSTOCK_ASSIGN(const SessionProcesses found, list_processes(targets, all.empty()));
    nothing_changed = true;
    for (const RecordingProcess& process : found.recording)
      if (is_target(targets, process) && switch_process(all, process, on)) nothing_changed = false;
    between_files = std::any_of(found.between_files.begin(), found.between_files.end(),
                                [&](const RecordingProcess& process) { return is_target(targets, process); });
  } while (needs_another_round(begin, ++rounds, nothing_changed, between_files));
  if (all.empty()) return no_target_error(targets);
  return all;
}

bool TraceWindow::inherited_from_traced(const RecordingProcess& process) const {
  const std::vector<uint32_t>& ancestors = process.inherited_from;
  return std::any_of(traced_.begin(), traced_.end(), [&](const TracedProcess& traced) {
    return traced.process.host == process.host && traced.from_ns != 0 &&
           std::find(ancestors.begin(), ancestors.end(), traced.process.pid) != ancestors.end();
  });
}

void TraceWindow::add_or_switch_on_again(const RecordingProcess& process) {
  TracedProcess* traced = find_traced(traced_, process);
  if (traced == nullptr) {
    const bool inherited = process.trace && !is_first_update_ && inherited_from_traced(process);
    if (!inherited && !is_target(targets_, process)) return;
    traced = &traced_.emplace_back();
    traced->process = process;
    traced->was_on = process.trace && !inherited;
    if (inherited) traced->from_ns = now_ns();
    if (process.trace) return;
  } else if (traced->process.file == process.file || traced->was_on || process.trace) {
    // If a user has switched the trace off in this file, it stays off. Only a new file is switched on again.
    traced->process = process;
    return;
  }
  traced->process = process;
  const Result<void> switched_on = set_trace(process, true);
  if (switched_on.ok()) {
    traced->from_ns = traced->from_ns == 0 ? now_ns() : traced->from_ns;
    traced->process.trace = true;
    traced->error_text.clear();
    // not_found is no failure: the process has ended, or the next update() finds it with its next file
  } else if (switched_on.error().code != Errc::not_found) {
    traced->error_text = switched_on.error().message();
  }
}

void TraceWindow::note_ended(const std::vector<RecordingProcess>& running) {
  for (TracedProcess& traced : traced_) {
    if (contains(running, traced.process)) {
      traced.ended = false;
      traced.to_ns = 0;
      continue;
    }
    // The process records nothing now: it has ended, it is between two files, or it is not watched any more.
    // `ended` is true only if it has ended.
    traced.ended =
        !traced.process.on_this_machine || !process_runs(traced.process.pid, traced.process.start_ticks);
    if (traced.to_ns == 0) traced.to_ns = now_ns();
  }
}

Result<void> TraceWindow::update() {
  PENSTOCK_ASSIGN(const SessionProcesses found, list_processes(targets_, is_first_update_));
  for (const RecordingProcess& process : found.recording) add_or_switch_on_again(process);
  note_ended(found.recording);
  if (is_first_update_ && traced_.empty()) return no_target_error(targets_);
  is_first_update_ = false;
  return success();
}

size_t TraceWindow::running_count() const {
  return size_t(std::count_if(traced_.begin(), traced_.end(), [](const TracedProcess& traced) {
    return !traced.ended && traced.error_text.empty();
  }));
}

// Switches the trace off in the running processes in which this object switched it on, and in their children.
// Returns true if there was nothing to switch off.
bool TraceWindow::switch_off_running(const std::vector<RecordingProcess>& running) {
  bool nothing_changed = true;
  for (const RecordingProcess& process : running) {
    if (!process.trace) continue;
    TracedProcess* traced = find_traced(traced_, process);
    if (traced == nullptr && inherited_from_traced(process)) {
      traced = &traced_.emplace_back();
      traced->from_ns = process.file_begin_ns;
    }
    if (traced == nullptr || traced->was_on || traced->from_ns == 0) continue;
    traced->process = process;
    const Result<void> switched_off = set_trace(process, false);
    traced->process.trace = !switched_off.ok();
    if (switched_off.ok() || switched_off.error().code == Errc::not_found) {
      nothing_changed = false;
    } else {
      traced->error_text = switched_off.error().message();
    }
  }
  return nothing_changed;
}

// Switches the trace off in the files of processes that have ended: a child that has not recorded anything
// yet will copy the trace switch from its parent's file, even if the parent has ended. Returns true if there
// was nothing to switch off.
bool TraceWindow::switch_off_ended() {
  bool nothing_changed = true;
  for (TracedProcess& traced : traced_) {
    if (!traced.ended || traced.was_on || traced.from_ns == 0 || !traced.process.trace) continue;
    static_cast<void>(set_trace(traced.process, false));
    traced.process.trace = false;
    nothing_changed = false;
  }
  return nothing_changed;
}

void TraceWindow::end() {
  if (ended_) return;
  ended_ = true;
  bool nothing_changed = true;
  bool between_files = false;
  const auto begin = std::chrono::steady_clock::now();
  int rounds = 0;
  do {
    const Result<SessionProcesses> found = list_processes(targets_, false);
    if (!found.ok()) break;
    nothing_changed = switch_off_running(found->recording);
    note_ended(found->recording);
    nothing_changed = switch_off_ended() && nothing_changed;
    between_files = std::any_of(
        found->between_files.begin(), found->between_files.end(), [&](const RecordingProcess& process) {
          const TracedProcess* traced = find_traced(traced_, process);
          return traced == nullptr ? inherited_from_traced(process) : !traced->was_on && traced->from_ns != 0;
        });
  } while (needs_another_round(begin, ++rounds, nothing_changed, between_files));
  const int64_t now = now_ns();
  for (TracedProcess& traced : traced_)
    if (traced.to_ns == 0) traced.to_ns = now;
}

}  // namespace penstock
