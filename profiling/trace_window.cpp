#include "profiling/trace_window.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <chrono>
#include <set>
#include <utility>

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::int64_t now_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

bool same_process(const RecordingProcess& a, const RecordingProcess& b) {
  return a.pid == b.pid && a.host == b.host;
}

fs::path folder_of(const RecordingProcess& process) {
  return fs::path(process.file).parent_path();
}

bool is_named(const TraceTargets& targets, const RecordingProcess& process) {
  return std::any_of(targets.processes.begin(), targets.processes.end(),
                     [&](const RecordingProcess& one) { return same_process(one, process); });
}

bool is_of_folder(const TraceTargets& targets, const RecordingProcess& process) {
  const fs::path folder = folder_of(process);
  const bool rank_is_meant =
      targets.ranks.empty() ||
      (process.rank >= 0 && std::find(targets.ranks.begin(), targets.ranks.end(),
                                      static_cast<std::uint64_t>(process.rank)) != targets.ranks.end());
  return rank_is_meant &&
         std::find(targets.folders.begin(), targets.folders.end(), folder) != targets.folders.end();
}

// All that run in the folders that are meant, or that a named process writes to. A folder that cannot be read
// (any more) is an error, or is passed over.
enum class Unreadable { is_error, is_passed_over };
Result<std::vector<RecordingProcess>> scanned(const TraceTargets& targets, Unreadable unreadable) {
  std::set<fs::path> folders(targets.folders.begin(), targets.folders.end());
  for (const RecordingProcess& process : targets.processes) folders.insert(folder_of(process));
  std::vector<RecordingProcess> all;
  for (const fs::path& folder : folders) {
    Result<std::vector<RecordingProcess>> running = recording_processes(folder);
    if (!running.ok() && unreadable == Unreadable::is_error) return running.error();
    if (!running.ok()) continue;
    for (RecordingProcess& process : *running) {
      process.here = process.here || is_named(targets, process);  // it was found by its own mappings
      all.push_back(std::move(process));
    }
  }
  return all;
}

Error nothing_runs(const TraceTargets& targets) {
  std::string where;
  for (const fs::path& folder : targets.folders)
    where += fmt::format("{}'{}'", where.empty() ? "" : ", ", folder.string());
  return make_error(Errc::not_found, fmt::format("nothing runs now in {}{}", where,
                                                 targets.ranks.empty() ? "" : " of these ranks"));
}

}  // namespace

Result<TraceTargets> trace_targets(std::span<const std::string> words) {
  TraceTargets targets;
  for (const std::string& word : words) {
    int pid = 0;
    const auto parsed = std::from_chars(word.data(), word.data() + word.size(), pid);
    if (parsed.ec == std::errc() && parsed.ptr == word.data() + word.size()) {
      PENSTOCK_ASSIGN(RecordingProcess process, recording_process(pid));
      targets.processes.push_back(std::move(process));
      continue;
    }
    std::error_code failed;
    fs::path folder = fs::absolute(word, failed).lexically_normal();
    if (!folder.has_filename()) folder = folder.parent_path();
    if (failed || !fs::is_directory(folder, failed))
      return make_error(Errc::not_found,
                        fmt::format("'{}' is neither a process's number nor a session's folder", word));
    targets.folders.push_back(std::move(folder));
  }
  return targets;
}

Result<std::vector<RecordingProcess>> meant_now(const TraceTargets& targets) {
  PENSTOCK_ASSIGN(std::vector<RecordingProcess> all, scanned(targets, Unreadable::is_error));
  std::erase_if(all, [&](const RecordingProcess& process) {
    return !is_named(targets, process) && !is_of_folder(targets, process);
  });
  if (all.empty()) return nothing_runs(targets);
  return all;
}

TracedProcess* TraceWindow::known(const RecordingProcess& process) {
  for (TracedProcess& one : traced_)
    if (same_process(one.process, process)) return &one;
  return nullptr;
}

bool TraceWindow::is_meant(const RecordingProcess& process) const {
  return is_named(targets_, process) || is_of_folder(targets_, process);
}

bool TraceWindow::is_child_of_armed(const RecordingProcess& process) {
  return std::any_of(traced_.begin(), traced_.end(), [&](const TracedProcess& one) {
    return one.process.host == process.host && one.process.pid == process.parent && one.from_ns != 0;
  });
}

void TraceWindow::meet(const RecordingProcess& process) {
  TracedProcess* one = known(process);
  if (one == nullptr) {
    const bool inherited = process.trace && !first_ && is_child_of_armed(process);
    if (!inherited && !is_meant(process)) return;
    one = &traced_.emplace_back();
    one->process = process;
    one->was_on = process.trace && !inherited;
    if (inherited) one->from_ns = now_ns();
    if (process.trace) return;
  } else if (one->process.file == process.file || one->was_on || process.trace) {
    // Whoever has switched off the same file meanwhile meant it.
    one->process = process;
    return;
  }
  one->process = process;
  const Result<void> armed = set_trace(process, true);
  if (armed.ok()) {
    one->from_ns = one->from_ns == 0 ? now_ns() : one->from_ns;
    one->process.trace = true;
  } else if (armed.error().code == Errc::not_found) {
    one->ended = true;
  } else {
    one->failed = armed.error().message();
  }
}

void TraceWindow::note_ended(const std::vector<RecordingProcess>& running) {
  for (TracedProcess& one : traced_) {
    const bool runs = std::any_of(running.begin(), running.end(), [&](const RecordingProcess& process) {
      return same_process(process, one.process);
    });
    if (!runs && !one.ended) {
      one.ended = true;
      one.to_ns = now_ns();
    } else if (runs && one.ended) {
      one.ended = false;  // between two files
      one.to_ns = 0;
    }
  }
}

Result<void> TraceWindow::look() {
  PENSTOCK_ASSIGN(const std::vector<RecordingProcess> running,
                  scanned(targets_, first_ ? Unreadable::is_error : Unreadable::is_passed_over));
  for (const RecordingProcess& process : running) meet(process);
  note_ended(running);
  if (first_ && traced_.empty()) return nothing_runs(targets_);
  first_ = false;
  return success();
}

std::size_t TraceWindow::running() const {
  return static_cast<std::size_t>(std::count_if(traced_.begin(), traced_.end(), [](const TracedProcess& one) {
    return !one.ended && one.failed.empty();
  }));
}

bool TraceWindow::over() const {
  return running() == 0;
}

// Whether there was nothing left to do.
bool TraceWindow::disarm_all(const std::vector<RecordingProcess>& running) {
  bool quiet = true;
  for (const RecordingProcess& process : running) {
    if (!process.trace) continue;
    TracedProcess* one = known(process);
    if (one == nullptr && is_child_of_armed(process)) {
      one = &traced_.emplace_back();
      one->from_ns = process.since_ns;
    }
    if (one == nullptr || one->was_on || one->from_ns == 0) continue;
    one->process = process;
    const Result<void> disarmed = set_trace(process, false);
    one->process.trace = !disarmed.ok();
    if (disarmed.ok()) {
      quiet = false;
    } else if (disarmed.error().code == Errc::not_found) {
      one->ended = true;
    } else {
      one->failed = disarmed.error().message();
    }
  }
  return quiet;
}

void TraceWindow::end() {
  if (ended_) return;
  ended_ = true;
  // Until there is nothing left: a file that was begun by an armed process a moment ago has taken its word
  // along.
  constexpr int kMost = 10;
  for (int i = 0; i < kMost; ++i) {
    const Result<std::vector<RecordingProcess>> running = scanned(targets_, Unreadable::is_passed_over);
    if (!running.ok()) break;
    const bool quiet = disarm_all(*running);
    note_ended(*running);
    if (quiet) break;
  }
  const std::int64_t now = now_ns();
  for (TracedProcess& one : traced_)
    if (one.to_ns == 0) one.to_ns = now;
}

}  // namespace penstock
