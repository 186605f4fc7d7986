// A session: what the processes of one run, or of several, left in their folders. All files stay mapped while
// it lives; what it says of them are views into the mappings.
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

// One file: a process from its begin, a fork or an exec to its end or its next exec.
class SessionImage {
 public:
  // not_found, permission_denied ...; corrupt or unsupported for what is no session file.
  static Result<std::unique_ptr<SessionImage>> open(const std::filesystem::path& path);
  // Of bytes that outlive it.
  static Result<std::unique_ptr<SessionImage>> of(std::span<const std::byte> bytes);

  const std::filesystem::path& path() const { return path_; }
  const SessionView& view() const { return view_; }
  const penstock_session_header& header() const { return view_.header(); }
  // How much the file lacks of what its header says; 0: nothing. A process's own file never does: somebody
  // cut it, or copied it in part.
  std::uint64_t missing_bytes() const { return missing_bytes_; }
  bool cut_while_read() const { return file_.lost(); }  // what was behind the cut counts as zeros

  std::string_view host() const { return field_text(header().host); }
  std::string_view executable() const { return field_text(header().executable); }
  std::string_view program() const { return base_name(executable()); }
  bool is_python() const { return python_; }
  std::vector<std::string_view> command() const;
  // The file's last word: when recording ended, or the last thing that it saw.
  std::int64_t end_monotonic_ns() const { return end_monotonic_ns_; }
  // As of SessionClock; what was said of times before does not hold any more.
  void refine_clock(const penstock_moment& moment);

 private:
  SessionImage() = default;
  Result<void> look(std::span<const std::byte> bytes, const NextData& next_data);
  void inspect_end();
  std::int64_t end_of_ticks() const;

  std::filesystem::path path_;
  MappedFile file_;
  SessionView view_;
  std::uint64_t missing_bytes_ = 0;
  bool python_ = false;
  std::int64_t end_monotonic_ns_ = 0;
  std::uint64_t last_ticks_ = 0;  // of anything that it did
};

// A process: its images in order.
struct SessionProcess {
  std::vector<const SessionImage*> images;
  const SessionImage& first() const { return *images.front(); }
  const SessionImage& last() const { return *images.back(); }
};

// A program that a watched process began and that left no file: a static or setuid one, mostly, or any one
// that was started by a process that was attached to.
struct UnwatchedProgram {
  std::uint32_t pid = 0;
  std::string_view program;  // is in a mapping; "" where unknown
  bool by_attached = false;
};

struct Session {
  std::vector<std::unique_ptr<SessionImage>> images;  // by host, process and begin
  std::vector<SessionProcess> processes;              // by begin
  std::vector<UnwatchedProgram> unwatched;
  std::vector<int> exit_codes;        // of what was run, as session.json says; -1: not known
  std::vector<std::string> detached;  // for each: when it was detached from, UTC; "" where it was not
  std::vector<std::string> problems;  // files that were not read, or only in part, and why
  std::size_t unread_files = 0;       // of these: not read, or only in part, and in no other state either
};

// Folders of sessions and single files of them. Of two states of one file (a session's and its snapshot's)
// the later is taken, and said among the problems. An error where a path is not there or where nothing in all
// of them is a session's file.
Result<Session> open_session(std::span<const std::filesystem::path> paths);
// At least one.
Session session_of(std::vector<std::unique_ptr<SessionImage>> images);
// Whether any process kept something of that kind.
bool has_entries(const Session& session, penstock_block_kind kind);

// For the kernel's last word on a process that has just ended and could not write it itself: sets kernel_end
// and end_monotonic_ns of the newest image of that process in the folder, if it has none. Never makes or
// lengthens a file.
Result<void> complete_image(const std::filesystem::path& folder, std::uint32_t pid,
                            const penstock_kernel_io& kernel_end, std::int64_t end_monotonic_ns);
// Likewise of one file.
Result<void> complete_file(const std::filesystem::path& file, const penstock_kernel_io& kernel_end,
                           std::int64_t end_monotonic_ns);

}  // namespace penstock
