#include "profiling/session/session.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <map>
#include <set>
#include <tuple>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/system/fd.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session_files.hpp"
#include "profiling/session/session_folder.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr size_t kMostProcessFiles = 1U << 20U;

NextData next_data_of(int fd, uint64_t size) {
  return [fd, size](uint64_t offset) -> uint64_t {
    const off_t data = ::lseek(fd, off_t(offset), SEEK_DATA);
    if (data >= 0) return uint64_t(data);
    // ENXIO: no data follow. After any other error (SEEK_DATA is not supported), nothing is skipped.
    return errno == ENXIO ? size : offset;
  };
}

Error with_path(Error error, const fs::path& path) {
  error.what = fmt::format("'{}': {}", path.string(), error.what);
  return error;
}

bool same_process(const ProcessFile& a, const ProcessFile& b) {
  return a.header().pid == b.header().pid && a.header().process_start == b.header().process_start &&
         a.header().pid_namespace == b.header().pid_namespace && a.host() == b.host();
}

// True if `later` was written by the process of `earlier`. If the start of the process is not known (/proc
// was not there), two processes may have had the same pid. Then only a file that says that its process
// continues has a later file.
bool continues(const ProcessFile& earlier, const ProcessFile& later) {
  const uint32_t state = earlier.header().state;
  return same_process(earlier, later) &&
         (earlier.header().process_start != 0 || state == PENSTOCK_EXECUTED || state == PENSTOCK_STOPPED);
}

bool is_earlier(const ProcessFile& a, const ProcessFile& b) {
  const auto key = [](const ProcessFile& process_file) {
    const penstock_session_header& header = process_file.header();
    return std::tuple(process_file.host(), header.pid_namespace, header.pid, header.process_start,
                      header.begin.monotonic_ns);
  };
  return key(a) < key(b);
}

// True if `a` and `b` are two states of the same process file, such as the file and a snapshot of it.
bool same_process_file(const ProcessFile& a, const ProcessFile& b) {
  return same_process(a, b) && a.header().begin.monotonic_ns == b.header().begin.monotonic_ns &&
         a.header().begin.ticks == b.header().begin.ticks;
}

// Returns a value by which two states of the same process file are compared: the later state has the greater
// value.
auto progress_of(const ProcessFile& process_file) {
  const penstock_session_header& header = process_file.header();
  return std::tuple(header.state != PENSTOCK_RUNNING, process_file.end_monotonic_ns(),
                    header.kernel_end_known, header.file_end);
}
bool is_better(const ProcessFile& a, const ProcessFile& b) {
  const bool a_is_whole = a.missing_bytes() == 0;
  const bool b_is_whole = b.missing_bytes() == 0;
  return a_is_whole != b_is_whole ? a_is_whole : progress_of(a) > progress_of(b);
}

// Keeps one state of each process file, because two states (a file and its snapshot) would count the same
// calls twice. A state without missing bytes is preferred to one with missing bytes. Otherwise the later
// state is kept. The text in `problems` names folders and not files, because a session may have thousands of
// files.
void leave_out_earlier_states(Session& session) {
  auto& process_files = session.process_files;
  std::stable_sort(process_files.begin(), process_files.end(),
                   [](const auto& a, const auto& b) { return is_earlier(*a, *b); });
  std::map<std::pair<fs::path, fs::path>, size_t> left_out;
  std::vector<std::unique_ptr<ProcessFile>> latest_states;
  for (auto& process_file : process_files) {
    if (latest_states.empty() || !same_process_file(*latest_states.back(), *process_file)) {
      latest_states.push_back(std::move(process_file));
      continue;
    }
    if (is_better(*process_file, *latest_states.back())) std::swap(latest_states.back(), process_file);
    if (progress_of(*process_file) > progress_of(*latest_states.back())) {
      // `process_file` is the later state but is not kept, because bytes of it are missing. open_session()
      // has reported that.
      ++session.unread_files;
      continue;
    }
    ++left_out[{process_file->path().parent_path(), latest_states.back()->path().parent_path()}];
  }
  process_files = std::move(latest_states);
  for (const auto& [folders, files] : left_out)
    session.problems.push_back(
        fmt::format("{} of '{}' {} of files in '{}' of the same process (a snapshot or a copy): only the "
                    "later state is counted",
                    count_of(files, "file"), folders.first.string(),
                    files == 1 ? "is an earlier state" : "are earlier states", folders.second.string()));
}

// Adds a problem if the folder has fewer session files than when its run ended.
void report_missing_files(const fs::path& folder, size_t found, Session& session) {
  const uint64_t wanted = read_note(folder).process_files;
  if (wanted <= found) return;
  session.unread_files += wanted - found;
  session.problems.push_back(fmt::format("'{}' has lost {} of the {} files that it had when its run ended",
                                         folder.string(), wanted - found, wanted));
}

Result<std::set<fs::path>> files_of(std::span<const fs::path> paths, Session& session) {
  std::set<fs::path> files;
  for (const fs::path& path : paths) {
    std::error_code failed;
    const fs::file_status status = fs::status(path, failed);
    if (status.type() == fs::file_type::not_found)
      return make_error(Errc::not_found, "there is no session '{}'", path.string());
    if (failed) return errno_error(failed.value(), "cannot read the session", path.string());
    if (fs::is_directory(status)) {
      PENSTOCK_ASSIGN(const std::vector<fs::path> found, session_files(path));
      files.insert(found.begin(), found.end());
      report_missing_files(path, found.size(), session);
    } else {
      files.insert(path);
    }
  }
  return files;
}

// Makes the conversion of ticks to nanoseconds more exact. All processes of a machine have the same tick
// counter and the same monotonic clock, and each recorded readings of both. The earliest and the latest of
// all these readings give the most exact nanoseconds per tick. This helps a process that was killed after a
// long time: its own readings may all be from its begin.
void refine_clocks(Session& session) {
  std::map<std::string_view, std::vector<penstock_moment>> host_moments;
  for (const auto& process_file : session.process_files) {
    const penstock_session_header& header = process_file->header();
    if (header.clock != PENSTOCK_CLOCK_TSC) continue;
    auto& moments = host_moments[process_file->host()];
    moments.push_back(header.begin);
    moments.push_back(header.later[header.later_index & 1U]);
  }
  for (auto& [host, moments] : host_moments)
    moments = {*std::ranges::min_element(moments, {}, &penstock_moment::monotonic_ns),
               *std::ranges::max_element(moments, {}, &penstock_moment::monotonic_ns)};
  for (const auto& process_file : session.process_files)
    if (const auto extremes = host_moments.find(process_file->host()); extremes != host_moments.end())
      for (const penstock_moment& moment : extremes->second) process_file->refine_clock(moment);
}

void group_processes(Session& session) {
  for (const auto& process_file : session.process_files) {
    if (session.processes.empty() || !continues(session.processes.back().last(), *process_file))
      session.processes.emplace_back();
    session.processes.back().process_files.push_back(process_file.get());
  }
  std::stable_sort(session.processes.begin(), session.processes.end(),
                   [](const SessionProcess& a, const SessionProcess& b) {
                     return a.first().header().begin_realtime_ns < b.first().header().begin_realtime_ns;
                   });
}

void add_lost_children(const ProcessFile& process_file, bool is_attached, Session& session) {
  const penstock_session_header& header = process_file.header();
  for (uint32_t i = 0; i < header.lost_children && i < PENSTOCK_LOST_CHILDREN; ++i)
    session.unwatched.push_back(
        {.pid = header.lost[i].pid,
         .program = process_file.executable(),
         .started_by_attached = is_attached,
         .after_rights_change = header.gave_up_rights == 2 && header.lost[i].failed == EPERM,
         .is_fork = true,
         .failed = int(header.lost[i].failed)});
  if (header.lost_children <= PENSTOCK_LOST_CHILDREN) return;
  session.problems.push_back(
      fmt::format("{} more processes forked by {} (process {}) could not create a session file",
                  header.lost_children - PENSTOCK_LOST_CHILDREN, process_file.executable(), header.pid));
}

void find_unwatched(Session& session) {
  // Host, namespace, pid and begin of each process file. A second entry has the pid that the process has in
  // the namespace of /proc, with kOuterNamespace: that is how a parent in another namespace knows it.
  constexpr uint32_t kOuterNamespace = UINT32_MAX;
  std::vector<std::tuple<std::string_view, uint32_t, uint32_t, int64_t>> begins;
  // The processes to which a user attached. Their LD_PRELOAD does not name the library, so programs that they
  // start are not watched.
  std::set<std::pair<std::string_view, uint32_t>> attached_pids;
  for (const auto& process_file : session.process_files) {
    const penstock_session_header& header = process_file->header();
    begins.emplace_back(process_file->host(), header.pid_namespace, header.pid, header.begin.monotonic_ns);
    if (header.kernel_pid != 0 && header.kernel_pid != header.pid)
      begins.emplace_back(process_file->host(), kOuterNamespace, header.kernel_pid,
                          header.begin.monotonic_ns);
    if (header.begun == PENSTOCK_START_REASON_ATTACHED)
      attached_pids.emplace(process_file->host(), header.pid);
  }
  std::sort(begins.begin(), begins.end());
  // True if the process `pid` on the machine of `by` has a process file that began at `since` or later. For a
  // spawned child, `since` is the begin of its parent's file. The time of the spawn would be too late: the
  // child may start before the parent records the spawn.
  const auto is_watched = [&](const ProcessFile& by, uint32_t pid, int64_t since) {
    return std::ranges::any_of(std::array{by.header().pid_namespace, kOuterNamespace}, [&](uint32_t space) {
      const auto found =
          std::lower_bound(begins.begin(), begins.end(), std::tuple(by.host(), space, pid, since));
      return found != begins.end() && std::get<0>(*found) == by.host() && std::get<1>(*found) == space &&
             std::get<2>(*found) == pid;
    });
  };
  for (const auto& process_file : session.process_files) {
    const penstock_session_header& header = process_file->header();
    // True if a user attached to the process, or to the process that forked it.
    const bool is_attached =
        attached_pids.contains({process_file->host(), header.pid}) ||
        (header.forked != 0 && attached_pids.contains({process_file->host(), header.parent_pid}));
    add_lost_children(*process_file, is_attached, session);
    // The program of the last exec in this process file. All execs before it failed, because an exec that
    // succeeds ends the file.
    UnwatchedProgram executed_program;
    std::map<std::string_view, penstock_not_loaded> not_loaded;  // the newest of each program
    process_file->view().each_event([&](const penstock_event& event, std::string_view text) {
      const auto why = not_loaded.find(text);
      const UnwatchedProgram program{.pid = event.pid,
                                     .program = text,
                                     .started_by_attached = is_attached,
                                     .not_loaded = why == not_loaded.end() ? PENSTOCK_LOADED : why->second};
      if (event.kind == PENSTOCK_EVENT_NOT_LOADED) {
        not_loaded[text] =
            event.pid <= PENSTOCK_LITTLE_MEMORY ? penstock_not_loaded(event.pid) : PENSTOCK_LOADED;
      } else if (event.kind == PENSTOCK_EVENT_EXEC) {
        executed_program = program;
      } else if (event.kind == PENSTOCK_EVENT_SPAWN &&
                 !is_watched(*process_file, event.pid, header.begin.monotonic_ns)) {
        session.unwatched.push_back(program);
      }
    });
    if (header.state == PENSTOCK_EXECUTED &&
        !is_watched(*process_file, header.pid, header.begin.monotonic_ns + 1)) {
      executed_program.pid = header.pid;
      executed_program.after_rights_change = header.gave_up_rights != 0;
      session.unwatched.push_back(executed_program);
    }
  }
}

}  // namespace

std::string reason_text(const UnwatchedProgram& program) {
  if (program.is_fork && program.after_rights_change)
    return "forked from a process that had restricted its system calls";
  if (program.is_fork)
    return fmt::format("forked; it could not create its session file: {}",
                       program.failed == 0 ? "reason unknown" : ::strerror(program.failed));
  if (program.started_by_attached)
    return "an attached process started it: only 'profile run' follows new programs";
  if (program.pid == 0) return "started by system() or popen() without LD_PRELOAD in the environment";
  switch (program.not_loaded) {
    case PENSTOCK_GAINS_RIGHTS:
      return "it gains rights (set-user-ID, set-group-ID or capabilities), so its loader ignores LD_PRELOAD";
    case PENSTOCK_OTHER_MACHINE:
      return "a program that is 32-bit or for another processor";
    case PENSTOCK_OTHER_LIBC:
      return "its C library is not glibc";
    case PENSTOCK_STATIC:
      return "a static program, which cannot load the library";
    case PENSTOCK_LITTLE_MEMORY:
      return "its memory limits (ulimit -d, ulimit -v) are too small for the library";
    case PENSTOCK_LOADED:
      break;
  }
  if (program.after_rights_change)
    return "it started after its process dropped privileges, changed its root or restricted its system calls";
  return "reason unknown";
}

std::vector<std::string_view> ProcessFile::command() const {
  std::string_view all(header().command, std::min<size_t>(header().command_bytes, sizeof header().command));
  std::vector<std::string_view> arguments;
  while (!all.empty()) {
    const size_t end = all.find('\0');
    arguments.push_back(all.substr(0, end));
    all = end == std::string_view::npos ? "" : all.substr(end + 1);
  }
  return arguments;
}

void ProcessFile::refine_clock(const penstock_moment& moment) {
  view_.clock().refine(moment);
  end_monotonic_ns_ = header().end_monotonic_ns != 0 ? end_monotonic_ns_ : end_from_ticks();
}

int64_t ProcessFile::end_from_ticks() const {
  return std::max(header().begin.monotonic_ns, view_.clock().monotonic_ns(last_ticks_));
}

void ProcessFile::inspect_end() {
  end_monotonic_ns_ = std::max(header().begin.monotonic_ns, header().end_monotonic_ns);
  if (header().end_monotonic_ns != 0) return;
  const penstock_moment& later = header().later[header().later_index & 1U];
  uint64_t& last = last_ticks_;
  last = std::max(later.ticks, header().begin.ticks);
  view_.each<penstock_thread>(PENSTOCK_BLOCK_THREADS, [&](const penstock_thread& thread, uint64_t) {
    last = std::max({last, thread.begin_ticks, thread.end_ticks});
  });
  view_.each<penstock_counters>(PENSTOCK_BLOCK_COUNTERS, [&](const penstock_counters& counters, uint64_t) {
    last = std::max(last, last_ticks_of(counters));
  });
  view_.each_event(
      [&](const penstock_event& event, std::string_view) { last = std::max(last, event.ticks); });
  end_monotonic_ns_ = end_from_ticks();
}

Result<std::unique_ptr<ProcessFile>> ProcessFile::open(const fs::path& path) {
  // O_NONBLOCK: if the path is a pipe, the open must not wait for a writer.
  const Fd fd(
      retry_eintr([&] { return ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY); }));
  if (!fd) return errno_error(errno, "cannot open", path.string());
  struct stat status {};
  if (::fstat(fd.get(), &status) != 0) return errno_error(errno, "cannot inspect", path.string());
  if (!S_ISREG(status.st_mode)) return make_error(Errc::corrupt, "'{}' is not a session file", path.string());
  const auto size = uint64_t(status.st_size);
  std::unique_ptr<ProcessFile> process_file(new ProcessFile);
  process_file->path_ = path;
  if (size > 0)
    if (const int failed = process_file->file_.map(fd.get(), size); failed != 0)
      return errno_error(failed, "cannot map", path.string());
  const Result<void> parsed = process_file->parse(process_file->file_.bytes(), next_data_of(fd.get(), size));
  if (!parsed.ok()) return with_path(parsed.error(), path);
  // Finds out whether the file was cut. A running process first makes its file longer and then raises
  // file_end in the header. So a size that is read after the header is at least file_end, unless the file was
  // cut.
  const uint64_t file_end = process_file->header().file_end;
  if (file_end > size && ::fstat(fd.get(), &status) == 0 && uint64_t(status.st_size) < file_end)
    process_file->missing_bytes_ = file_end - uint64_t(status.st_size);
  return process_file;
}

Result<std::unique_ptr<ProcessFile>> ProcessFile::from_bytes(std::span<const std::byte> bytes) {
  std::unique_ptr<ProcessFile> process_file(new ProcessFile);
  PENSTOCK_TRY(process_file->parse(bytes, {}));
  return process_file;
}

Result<void> ProcessFile::parse(std::span<const std::byte> bytes, const NextData& next_data) {
  PENSTOCK_ASSIGN(view_, SessionView::parse(bytes, next_data));
  const std::vector<std::string_view> arguments = command();
  is_python_ = program().starts_with("python") ||
               (!arguments.empty() && base_name(arguments[0]).starts_with("python"));
  inspect_end();
  return success();
}

Result<Session> open_session(std::span<const fs::path> paths) {
  Session session;
  PENSTOCK_ASSIGN(const std::set<fs::path> files, files_of(paths, session));
  size_t files_left = files.size();
  for (const fs::path& file : files) {
    if (session.process_files.size() == kMostProcessFiles) {
      session.problems.push_back(
          fmt::format("too many session files: {1} of {0} were not read", files.size(), files_left));
      session.unread_files += files_left;
      break;
    }
    --files_left;
    Result<std::unique_ptr<ProcessFile>> process_file = ProcessFile::open(file);
    if (process_file.ok()) {
      if (const uint64_t missing = (*process_file)->missing_bytes(); missing > 0)
        session.problems.push_back(fmt::format(
            "'{}' is truncated: {} of the {} bytes that its header promises are missing and not counted",
            file.string(), missing, (*process_file)->header().file_end));
      session.process_files.push_back(*std::move(process_file));
    } else {
      ++session.unread_files;
      session.problems.push_back(process_file.error().message());
    }
  }
  if (session.process_files.empty()) {
    std::string quoted_paths;
    for (const fs::path& path : paths)
      quoted_paths += fmt::format("{}'{}'", quoted_paths.empty() ? "" : ", ", path.string());
    return make_error(session.problems.empty() ? Errc::not_found : Errc::corrupt,
                      session.problems.empty() ? fmt::format("there is no session file in {}", quoted_paths)
                                               : fmt::format("no file in {} can be read: {}", quoted_paths,
                                                             session.problems.front()));
  }
  leave_out_earlier_states(session);
  std::vector<std::string> problems = std::move(session.problems);
  const auto cut_files =
      std::count_if(session.process_files.begin(), session.process_files.end(),
                    [](const auto& process_file) { return process_file->missing_bytes() > 0; });
  const size_t unread_files = session.unread_files + size_t(cut_files);
  session = session_of(std::move(session.process_files));
  session.problems.insert(session.problems.begin(), problems.begin(), problems.end());
  session.unread_files = unread_files;
  return session;
}

Session session_of(std::vector<std::unique_ptr<ProcessFile>> process_files) {
  Session session;
  session.process_files = std::move(process_files);
  std::stable_sort(session.process_files.begin(), session.process_files.end(),
                   [](const auto& a, const auto& b) { return is_earlier(*a, *b); });
  refine_clocks(session);
  group_processes(session);
  find_unwatched(session);
  return session;
}

bool has_entries(const Session& session, penstock_block_kind kind) {
  return std::ranges::any_of(session.process_files, [&](const auto& process_file) {
    return std::ranges::any_of(process_file->view().blocks(), [&](const SessionBlock& block) {
      return block.kind == unsigned(kind) && !block.entries.empty();
    });
  });
}

Result<void> complete_process_file(const fs::path& folder, uint32_t pid, const penstock_kernel_io& kernel_end,
                                   int64_t end_monotonic_ns) {
  PENSTOCK_ASSIGN(const std::vector<fs::path> files, session_files(folder));
  fs::path newest_file;
  int64_t newest_ns = INT64_MIN;
  for (const fs::path& file : files) {
    if (!file.filename().string().starts_with(fmt::format("{}-", pid))) continue;
    const auto process_file = ProcessFile::open(file);
    if (!process_file.ok() || (*process_file)->header().pid != pid) continue;
    // In another namespace `pid` is another process.
    const uint32_t pid_namespace = (*process_file)->header().pid_namespace;
    if (pid_namespace != 0 && pid_namespace != own_pid_namespace()) continue;
    const penstock_session_header& header = (*process_file)->header();
    if (header.begin.monotonic_ns <= newest_ns) continue;
    newest_ns = header.begin.monotonic_ns;
    newest_file = header.kernel_end_known == 0 ? file : fs::path();
  }
  return newest_file.empty() ? success() : complete_file(newest_file, kernel_end, end_monotonic_ns);
}

Result<void> complete_file(const fs::path& file, const penstock_kernel_io& kernel_end,
                           int64_t end_monotonic_ns) {
  const Fd fd(retry_eintr([&] { return ::open(file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW); }));
  if (!fd) return errno_error(errno, "cannot open", file.string());
  // kernel_end_known is written last: a reader that sees it set also finds kernel_end and end_monotonic_ns.
  const uint32_t end_is_known = 1;
  const auto write_at = [&](size_t offset, const void* value, size_t bytes) {
    return ::pwrite(fd.get(), value, bytes, off_t(offset)) == ssize_t(bytes);
  };
  using Header = penstock_session_header;
  const uint32_t counted_end_is_known = 0;  // the process's own reading is replaced
  if (!write_at(offsetof(Header, kernel_end), &kernel_end, sizeof kernel_end) ||
      !write_at(offsetof(Header, end_monotonic_ns), &end_monotonic_ns, sizeof end_monotonic_ns) ||
      !write_at(offsetof(Header, counted_end_is_known), &counted_end_is_known, sizeof counted_end_is_known) ||
      !write_at(offsetof(Header, kernel_end_known), &end_is_known, sizeof end_is_known))
    return errno_error(errno, "cannot write", file.string());
  return success();
}

}  // namespace penstock
