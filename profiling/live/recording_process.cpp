// Finds recording processes and switches their traces.
//
// A recorded process has its session file mapped and writes to it. The code here runs in a penstock command:
// it reads the file with pread(), and writes to it only in set_trace().
// profiling/interpose/writer/session_lifetime.cpp shows how the recorded process reads the switch.
//
// Threads: any thread of a penstock command may call these functions, also the live view's inspecting thread
// (profiling/serve/live_view.hpp).
// Locks: none.
// Memory: may allocate.
// Crash: the switch is one write, so it is on or off, never half written.
#include "profiling/live/recording_process.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstddef>
#include <map>
#include <optional>
#include <tuple>
#include <utility>

#include "io_backends/core/system/fd.hpp"
#include "profiling/attach/target.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session_files.hpp"
#include "profiling/session/session_view.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

bool trace_is_on(const penstock_session_header& header) {
  return (header.control & 1U) != 0;
}

std::string command_of(const penstock_session_header& header) {
  std::string command(header.command, std::min<size_t>(header.command_bytes, sizeof header.command));
  while (!command.empty() && command.back() == '\0') command.pop_back();
  std::replace(command.begin(), command.end(), '\0', ' ');
  return command.empty() ? std::string(field_text(header.executable)) : command;
}

RecordingProcess describe_process(const penstock_session_header& header, const std::string& file,
                                  const std::string& host) {
  RecordingProcess process;
  process.pid = header.pid;
  process.start_ticks = header.process_start;
  if (header.inherited_from != 0) process.inherited_from.push_back(header.inherited_from);
  process.host = field_text(header.host);
  process.rank = header.rank < header.ranks ? int(header.rank) : -1;
  process.file = file;
  process.command = command_of(header);
  process.start_reason = header.begun;
  process.file_begin_ns = header.begin_realtime_ns;
  process.trace = trace_is_on(header);
  process.trace_limit_bytes = header.trace_limit;
  process.on_this_machine = process.host == host && process_runs(header.pid, header.process_start);
  return process;
}

Error other_machine_error(const RecordingProcess& process) {
  return make_error(
      Errc::unsupported,
      "process {} runs on '{}': run the command there (ssh {}; in a Slurm job: srun --overlap -w {})",
      process.pid, process.host, process.host, process.host);
}

Error not_recording_error(const RecordingProcess& process) {
  return make_error(Errc::not_found, "process {} has ended or no longer writes to '{}'", process.pid,
                    process.file);
}

// (host, pid) of a process -> pid of the process from which it inherited its trace switch.
using Inheritance = std::map<std::pair<std::string, uint32_t>, uint32_t>;

void add_ancestors(RecordingProcess& process, const Inheritance& inheritance) {
  constexpr size_t kMostAncestors = 64;
  while (!process.inherited_from.empty() && process.inherited_from.size() < kMostAncestors) {
    const auto found = inheritance.find({process.host, process.inherited_from.back()});
    if (found == inheritance.end()) return;
    process.inherited_from.push_back(found->second);
  }
}

Error not_watched_error(int pid) {
  const Result<Target> target = Target::inspect(pid);
  // A program that cannot be attached to (invalid_argument) may still be one that is not watched.
  if (!target.ok() && target.error().code != Errc::invalid_argument) return target.error();
  if (const auto removed = target.ok() ? removed_session(*target) : std::nullopt)
    return make_error(Errc::not_found, "process {} is being profiled, but {}", pid,
                      session_gone_text(pid, *removed));
  return make_error(Errc::not_found,
                    "process {} is not being profiled; to profile it: penstock profile attach {}", pid, pid);
}

void sort_by_rank(std::vector<RecordingProcess>& processes) {
  const auto sort_key = [](const RecordingProcess& process) {
    return std::tuple(process.rank < 0, process.rank, process.host, process.pid);
  };
  std::stable_sort(processes.begin(), processes.end(),
                   [&](const auto& a, const auto& b) { return sort_key(a) < sort_key(b); });
}

}  // namespace

std::string session_gone_text(int pid, const SessionFile& removed) {
  std::string text = fmt::format("its session '{}' was removed, so nothing is recorded",
                                 fs::path(removed.file).parent_path().string());
  if (removed.header.begun != PENSTOCK_START_REASON_PROCESS)
    text += fmt::format("; to stop it: penstock profile detach {}", pid);
  return text;
}

Result<std::vector<RecordingProcess>> recording_processes(const fs::path& folder) {
  PENSTOCK_ASSIGN(SessionProcesses processes, session_processes(folder));
  return std::move(processes.recording);
}

Result<SessionProcesses> session_processes(const fs::path& folder) {
  PENSTOCK_ASSIGN(const std::vector<fs::path> files, session_files(folder));
  using ProcessKey = std::tuple<std::string, uint32_t, uint64_t>;
  std::map<ProcessKey, SessionFile> newest_files;  // the newest file of each process, in any state
  Inheritance inheritance;
  for (const fs::path& file : files) {
    const Fd fd(retry_eintr([&] { return ::open(file.c_str(), O_RDONLY | kSessionOpenFlags); }));
    struct stat status {};
    penstock_session_header header{};
    if (!fd || ::fstat(fd.get(), &status) != 0 || !S_ISREG(status.st_mode) || !read_header(fd.get(), header))
      continue;
    const std::string file_host(field_text(header.host));
    if (header.inherited_from != 0)
      inheritance.insert_or_assign({file_host, header.pid}, header.inherited_from);
    SessionFile& latest = newest_files[{file_host, header.pid, header.process_start}];
    if (!latest.file.empty() && latest.header.begin.monotonic_ns > header.begin.monotonic_ns) continue;
    latest = {file.string(), header};
  }
  const std::string host = this_host();
  SessionProcesses processes;
  for (const auto& [key, session_file] : newest_files) {
    const bool is_recording = session_file.header.state == PENSTOCK_RUNNING;
    if (!is_recording && session_file.header.state != PENSTOCK_STOPPED) continue;
    RecordingProcess process = describe_process(session_file.header, session_file.file, host);
    add_ancestors(process, inheritance);
    if (is_recording && (process.on_this_machine || process.host != host))
      processes.recording.push_back(std::move(process));
    else if (!is_recording && process.on_this_machine)
      processes.between_files.push_back(std::move(process));
  }
  sort_by_rank(processes.recording);
  return processes;
}

Result<RecordingProcess> recording_process(int pid) {
  const auto running = running_session(pid);
  if (!running) return not_watched_error(pid);
  RecordingProcess process = describe_process(running->header, running->file, this_host());
  // A process of this machine has the file mapped, even if the file names another host.
  process.on_this_machine = true;
  return process;
}

Result<void> set_trace(const RecordingProcess& process, bool on) {
  if (!process.on_this_machine) return other_machine_error(process);
  const Fd fd(retry_eintr([&] { return ::open(process.file.c_str(), O_RDWR | kSessionOpenFlags); }));
  if (!fd && errno == ENOENT) return not_recording_error(process);
  if (!fd && errno == ELOOP)
    return make_error(Errc::corrupt,
                      "'{}' is a symbolic link and not a session file: nothing is written there",
                      process.file);
  if (!fd) return errno_error(errno, "cannot write", process.file);
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "cannot inspect", process.file);
  if (status.st_uid != ::geteuid() && ::geteuid() != 0)
    return make_error(
        Errc::permission_denied,
        "'{}' belongs to another user: only its owner and root may control the recording of process {}",
        process.file, process.pid);
  penstock_session_header header{};
  if (!S_ISREG(status.st_mode) || !read_header(fd.get(), header) || header.pid != process.pid)
    return make_error(Errc::corrupt, "'{}' is not the session file of process {}", process.file, process.pid);
  const bool is_running = header.state == PENSTOCK_RUNNING && process_runs(header.pid, header.process_start);
  if (!is_running && on) return not_recording_error(process);
  const uint32_t control = on ? header.control | 1U : header.control & ~1U;
  // The process never sees a half-written value: the four bytes are in one page.
  if (::pwrite(fd.get(), &control, sizeof control, offsetof(penstock_session_header, control)) !=
      ssize_t(sizeof control))
    return errno_error(errno, "cannot write", process.file);
  // Checks that the switch was not written too late. A process that goes on to its next file first changes
  // `state` in this file and then copies the trace switch from it. So if `state` is still PENSTOCK_RUNNING
  // after the write, the next file will get the new value.
  if (!is_running || !read_header(fd.get(), header) || header.state != PENSTOCK_RUNNING)
    return not_recording_error(process);
  return success();
}

}  // namespace penstock
