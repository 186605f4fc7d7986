// Reads a session: the files that the processes of one run, or of several, wrote to their folders. All files
// stay mapped as long as the Session lives, because its texts are views into the mappings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/files/mapped_file.hpp"
#include "profiling/session/session_view.hpp"

namespace penstock {

// One file of a session: what a process did in one part of its life. That part begins with the process, a
// fork, an exec, an attach or a window. It ends with the next exec, a detach, the next window or the end of
// the process.
class ProcessFile {
 public:
  // Opens a session file. Errors: not_found, permission_denied ...; corrupt or unsupported if it is no
  // session file.
  static Result<std::unique_ptr<ProcessFile>> open(const std::filesystem::path& path);
  // Makes a process file of bytes in memory, which must live longer than the process file.
  static Result<std::unique_ptr<ProcessFile>> from_bytes(std::span<const std::byte> bytes);

  const std::filesystem::path& path() const { return path_; }
  const SessionView& view() const { return view_; }
  const penstock_session_header& header() const { return view_.header(); }
  // The number of bytes that the file lacks, compared with the size in its header. 0 unless the file was cut
  // or only a part of it was copied.
  uint64_t missing_bytes() const { return missing_bytes_; }
  bool cut_while_read() const { return file_.lost(); }  // then the bytes after the cut are read as zeros

  std::string_view host() const { return field_text(header().host); }
  std::string_view executable() const { return field_text(header().executable); }
  std::string_view program() const { return base_name(executable()); }
  bool is_python() const { return is_python_; }
  std::vector<std::string_view> command() const;
  // When recording ended. If the file does not say when, this is the latest time in its header, threads and
  // counters.
  int64_t end_monotonic_ns() const { return end_monotonic_ns_; }
  // Makes the conversion of ticks more exact (SessionClock::refine()). This changes the times that this
  // process file returns, so a caller must read them again afterwards.
  void refine_clock(const penstock_moment& moment);

 private:
  ProcessFile() = default;
  Result<void> parse(std::span<const std::byte> bytes, const NextData& next_data);
  void inspect_end();
  int64_t end_from_ticks() const;

  std::filesystem::path path_;
  MappedFile file_;
  SessionView view_;
  uint64_t missing_bytes_ = 0;
  bool is_python_ = false;
  int64_t end_monotonic_ns_ = 0;
  // The latest time in the header, the threads and the counters; 0 if the header has the time of the end.
  uint64_t last_ticks_ = 0;
};

// A process and its process files in the order of time.
struct SessionProcess {
  std::vector<const ProcessFile*> process_files;
  const ProcessFile& first() const { return *process_files.front(); }
  const ProcessFile& last() const { return *process_files.back(); }
};

// A program that a watched process started, or a child that it forked, of which there is no session file.
struct UnwatchedProgram {
  uint32_t pid = 0;          // 0: not known, of a shell that system() or popen() started
  std::string_view program;  // points into a mapping; "" if unknown
  // A user attached to the process that started it, and LD_PRELOAD in that process does not name the library.
  bool started_by_attached = false;
  // The process that executed it had given up rights or changed its root, or the process that forked it had
  // restricted its system calls.
  bool after_rights_change = false;
  penstock_not_loaded not_loaded = PENSTOCK_LOADED;
  bool is_fork = false;  // a forked child that made calls, of the program `program`
  int failed = 0;        // errno with which a forked child could not make its file
};
// Returns why there is no file, in a few words.
std::string reason_text(const UnwatchedProgram& program);

struct Session {
  std::vector<std::unique_ptr<ProcessFile>> process_files;  // sorted by host, process and begin
  std::vector<SessionProcess> processes;                    // sorted by begin
  std::vector<UnwatchedProgram> unwatched;
  // exit codes of the programs that were run, from session.json; -1: not known
  std::vector<int> exit_codes;
  // for each run in session.json: the time (UTC) when the user detached, or "" if the user did not
  std::vector<std::string> detach_times;
  std::vector<std::string> problems;  // which files were not read fully, and why
  // files that were not read fully, and of which no complete copy was read instead
  size_t unread_files = 0;
};

// Opens folders of sessions and single session files. If two files are states of the same process file (a
// session and its snapshot), only one is used: the one without missing bytes, otherwise the later one.
// `problems` names the folder of an earlier state that is not used. Errors: a path does not exist, or no path
// contains a session file that can be read.
Result<Session> open_session(std::span<const std::filesystem::path> paths);
// Makes a session of at least one process file.
Session session_of(std::vector<std::unique_ptr<ProcessFile>> process_files);
// True if the file of any process has an entry in a block of this kind.
bool has_entries(const Session& session, penstock_block_kind kind);

// Adds the kernel's final counts of a process that has just ended, because it could not write them itself.
// Sets kernel_end and end_monotonic_ns in the newest process file of this process in the folder, unless that
// file already has these members. Never creates or lengthens a file.
Result<void> complete_process_file(const std::filesystem::path& folder, uint32_t pid,
                                   const penstock_kernel_io& kernel_end, int64_t end_monotonic_ns);
// Writes kernel_end and end_monotonic_ns into the header of one file, even if the header already has them.
// The process must have ended. Never creates or lengthens the file.
Result<void> complete_file(const std::filesystem::path& file, const penstock_kernel_io& kernel_end,
                           int64_t end_monotonic_ns);

}  // namespace penstock
