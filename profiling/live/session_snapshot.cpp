// Copies the files of a session while their processes write to them. The processes do not wait for the copy,
// so a file may change during it. After the first copy, the code copies the changed parts again, and discards
// segments that were replaced meanwhile.
//
// Threads: the main thread of a penstock command.
// Locks: none.
// Memory: may allocate.
// Ctrl-C: sets a flag that copy_bytes() checks; the unfinished copy is then removed.
#include "profiling/live/session_snapshot.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/system/fd.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/files/mapped_file.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session.hpp"
#include "profiling/session/session_files.hpp"
#include "profiling/session/session_folder.hpp"
#include "profiling/session/session_view.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// Maps the file into `file`, and returns a view of the session in this mapping; nullopt if the file is no
// session.
Result<std::optional<SessionView>> view_of(int fd, const std::string& path, MappedFile& file) {
  struct stat status {};
  std::optional<SessionView> view;
  if (::fstat(fd, &status) != 0) return errno_error(errno, "cannot inspect", path);
  if (status.st_size == 0) return view;
  if (const int error = file.map(fd, size_t(status.st_size)); error != 0)
    return errno_error(error, "cannot map", path);
  if (Result<SessionView> parsed = SessionView::parse(file.bytes()); parsed.ok()) view = *std::move(parsed);
  return view;
}

// Offset of a block of segments -> how many times the recorded process has emptied the block to use it again.
using EmptiedCounts = std::map<uint64_t, uint64_t>;
Result<EmptiedCounts> emptied_counts(int fd, const std::string& path) {
  EmptiedCounts counts;
  MappedFile file;
  PENSTOCK_ASSIGN(const std::optional<SessionView> view, view_of(fd, path, file));
  if (!view) return counts;
  for (const SessionBlock& block : view->blocks())
    if (block.kind == PENSTOCK_BLOCK_SEGMENTS) counts.emplace(block.offset, block.times_emptied);
  return counts;
}

// Empties blocks of segments in the copy if the recorded process reused them during the copy: such a block
// may be a mixture of old and new segments. Adds the segments that are lost in this way to dropped_segments
// in the copy's header. `dropped`: dropped_segments in the source's header when `counts_after` was read.
Result<void> clear_reused_blocks(int copy, const EmptiedCounts& counts_before,
                                 const EmptiedCounts& counts_after, uint64_t dropped, const std::string& to) {
  const auto count_at = [](const EmptiedCounts& counts, uint64_t offset) {
    const auto found = counts.find(offset);
    return found == counts.end() ? 0 : found->second;
  };
  PENSTOCK_ASSIGN(const EmptiedCounts counts_in_copy, emptied_counts(copy, to));
  for (const auto& [offset, count_in_copy] : counts_in_copy) {
    if (count_at(counts_before, offset) == count_in_copy && count_at(counts_after, offset) == count_in_copy)
      continue;
    uint64_t used = 0;
    const off_t used_offset = off_t(offset + offsetof(penstock_block, used));
    const uint64_t zero = 0;
    if (::pread(copy, &used, sizeof used, used_offset) != ssize_t(sizeof used) ||
        ::pwrite(copy, &zero, sizeof zero, used_offset) != ssize_t(sizeof zero))
      return errno_error(errno, "cannot write", to);
    // If the block was emptied once more after it was copied, `dropped` already counts its segments.
    if (count_at(counts_after, offset) == count_in_copy) dropped += used / sizeof(penstock_segment);
  }
  if (::pwrite(copy, &dropped, sizeof dropped, offsetof(penstock_session_header, dropped_segments)) !=
      ssize_t(sizeof dropped))
    return errno_error(errno, "cannot write", to);
  return success();
}

uint64_t dropped_in(int fd, uint64_t default_count) {
  penstock_session_header header{};
  return read_header(fd, header) ? header.dropped_segments : default_count;
}

Result<void> write_at(int to, const void* bytes, size_t count, uint64_t offset, const std::string& target) {
  const auto* from = static_cast<const char*>(bytes);
  for (size_t done_bytes = 0; done_bytes < count;) {
    const ssize_t written_bytes = retry_eintr(
        [&] { return ::pwrite(to, from + done_bytes, count - done_bytes, off_t(offset + done_bytes)); });
    if (written_bytes <= 0) return errno_error(written_bytes < 0 ? errno : ENOSPC, "cannot write", target);
    done_bytes += size_t(written_bytes);
  }
  return success();
}

Result<void> copy_bytes(int from, int to, const std::string& source, const std::string& target) {
  std::vector<char> buffer(1 << 20);
  for (uint64_t at = 0;;) {
    PENSTOCK_TRY(check_interrupt());
    const ssize_t read_bytes = retry_eintr([&] { return ::read(from, buffer.data(), buffer.size()); });
    if (read_bytes < 0) return errno_error(errno, "cannot read", source);
    if (read_bytes == 0) return success();
    PENSTOCK_TRY(write_at(to, buffer.data(), size_t(read_bytes), at, target));
    at += uint64_t(read_bytes);
  }
}

// Reads the kernel's counts of the process, and the header of its file, so that both are of one moment. The
// kernel also counts the bytes that the profiler's library writes to the file. The library adds these bytes
// to kernel_begin, so that they are not in the difference between the counts and kernel_begin. Both are read
// again until kernel_begin is equal in two readings, but at most kMostTries times.
std::optional<penstock_kernel_io> current_kernel_io(int session, penstock_session_header& header) {
  constexpr int kMostTries = 100;
  penstock_kernel_io kernel{};
  for (int i = 0; i < kMostTries; ++i) {
    const uint64_t previous_wchar = header.kernel_begin.wchar;
    if (!read_kernel_io(header.pid, kernel) || !read_header(session, header)) return std::nullopt;
    if (header.kernel_begin.wchar == previous_wchar && i != 0) break;
  }
  return kernel;
}

// Copies one part of the source again, to bring an older copy up to date. CopyPart::segments: the blocks of
// segments that have changed. CopyPart::other_blocks: the header and all blocks without segments; they are
// small, so all counters in the copy are from nearly the same moment.
enum class CopyPart { segments, other_blocks };
Result<void> refresh_copy(CopyPart part, int from, int copy, const std::string& source,
                          const std::string& target) {
  MappedFile file;
  PENSTOCK_ASSIGN(const std::optional<SessionView> view, view_of(from, source, file));
  if (!view) return success();
  const std::span<const std::byte> bytes = file.bytes();
  for (const SessionBlock& block : view->blocks()) {
    const bool has_segments = block.kind == PENSTOCK_BLOCK_SEGMENTS;
    if (has_segments != (part == CopyPart::segments)) continue;
    penstock_block copied_block{};
    const bool is_same = has_segments &&
                         ::pread(copy, &copied_block, sizeof copied_block, off_t(block.offset)) ==
                             ssize_t(sizeof copied_block) &&
                         copied_block.magic == PENSTOCK_BLOCK_MAGIC &&
                         copied_block.used == block.entries.size() &&
                         copied_block.renewed == block.times_emptied;
    if (!is_same)
      PENSTOCK_TRY(write_at(copy, bytes.data() + block.offset, sizeof copied_block + block.entries.size(),
                            block.offset, target));
  }
  if (part == CopyPart::segments) return success();
  // The copy gets the length of the source. Blocks of segments that the process added after the first copy
  // are zeros in the copy, and readers skip them.
  const auto end = off_t(view->header().file_end);
  struct stat status {};
  if (::fstat(copy, &status) != 0 || (status.st_size < end && ::ftruncate(copy, end) != 0))
    return errno_error(errno, "cannot write", target);
  return write_at(copy, bytes.data(), std::min(bytes.size(), sizeof(penstock_session_header)), 0, target);
}

// The files of an unfinished copy. The destructor deletes them and their folder, unless keep() was called.
class PartialCopy {
 public:
  explicit PartialCopy(fs::path folder) : folder_(std::move(folder)) {}
  ~PartialCopy() {
    if (is_kept_) return;
    for (const fs::path& file : files_) ::unlink(file.c_str());
    ::rmdir(folder_.c_str());
  }
  PartialCopy(const PartialCopy&) = delete;
  PartialCopy& operator=(const PartialCopy&) = delete;
  void add(const fs::path& file) { files_.push_back(file); }
  void keep() { is_kept_ = true; }

 private:
  fs::path folder_;
  std::vector<fs::path> files_;
  bool is_kept_ = false;
};

// Copies one file of a session while its process may continue to write. First the whole file is copied, which
// may take long. If the process runs, three steps follow: 1. the changed blocks of segments are copied again;
// 2. the kernel's counts of the process are read; 3. the header and all other blocks are copied again. Steps
// 2 and 3 are so short that the kernel's counts and the session's counters are from nearly the same moment,
// and the coverage is right.
Result<void> copy_session_file(const fs::path& from, const fs::path& folder, PartialCopy& partial) {
  const fs::path to = folder / from.filename();
  const Fd in(retry_eintr([&] { return ::open(from.c_str(), O_RDONLY | kSessionOpenFlags); }));
  struct stat status {};
  if (!in || ::fstat(in.get(), &status) != 0) return errno_error(errno, "cannot read", from.string());
  penstock_session_header header{};
  char magic[sizeof header.magic] = {};
  constexpr char kNoMagic[sizeof magic] = {};
  if (!S_ISREG(status.st_mode) || ::pread(in.get(), magic, sizeof magic, 0) != sizeof magic ||
      std::memcmp(magic, kNoMagic, sizeof magic) == 0)
    return success();  // no error: its process is still creating the file
  const bool is_running = read_header(in.get(), header) && header.state == PENSTOCK_RUNNING;
  Fd out(retry_eintr([&] { return ::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600); }));
  if (!out) return errno_error(errno, "cannot write", to.string());
  partial.add(to);
  PENSTOCK_TRY(copy_bytes(in.get(), out.get(), from.string(), to.string()));
  std::optional<penstock_kernel_io> kernel;
  int64_t now_ns = 0;
  if (is_running) {
    PENSTOCK_ASSIGN(const EmptiedCounts counts_before, emptied_counts(in.get(), from.string()));
    PENSTOCK_TRY(refresh_copy(CopyPart::segments, in.get(), out.get(), from.string(), to.string()));
    if (field_text(header.host) == this_host() && process_runs(header.pid, header.process_start))
      kernel = current_kernel_io(in.get(), header);
    now_ns = span_ns(std::chrono::steady_clock::now());
    PENSTOCK_TRY(refresh_copy(CopyPart::other_blocks, in.get(), out.get(), from.string(), to.string()));
    // Reads `counts_after` and `dropped` so that both are of one moment: again until `dropped` is equal in
    // two readings, but at most kMostTries times.
    constexpr int kMostTries = 100;
    EmptiedCounts counts_after;
    uint64_t dropped = header.dropped_segments;
    for (int i = 0; i < kMostTries; ++i) {
      PENSTOCK_ASSIGN(counts_after, emptied_counts(in.get(), from.string()));
      const uint64_t previous_dropped = std::exchange(dropped, dropped_in(in.get(), dropped));
      if (i != 0 && dropped == previous_dropped) break;
    }
    PENSTOCK_TRY(clear_reused_blocks(out.get(), counts_before, counts_after, dropped, to.string()));
    if (kernel)
      PENSTOCK_TRY(write_at(out.get(), &header.kernel_begin, sizeof header.kernel_begin,
                            offsetof(penstock_session_header, kernel_begin), to.string()));
  }
  if (const int error = out.close(); error != 0) return errno_error(error, "cannot write", to.string());
  return kernel ? complete_file(to, *kernel, now_ns) : success();
}

}  // namespace

Result<void> snapshot_session(const fs::path& folder, const fs::path& to) {
  PENSTOCK_ASSIGN(const std::vector<fs::path> files, session_files(folder));
  if (files.empty()) return make_error(Errc::not_found, "there is no session file in '{}'", folder.string());
  PENSTOCK_ASSIGN(const fs::path new_folder, make_session_folder(to));
  PartialCopy partial(new_folder);
  for (const fs::path& file : files) PENSTOCK_TRY(copy_session_file(file, new_folder, partial));
  if (const SessionNote note = read_note(folder); !note.started.empty())
    PENSTOCK_TRY(write_note(new_folder, note));
  partial.keep();
  return success();
}

Result<void> snapshot_process(const RecordingProcess& process, const fs::path& to) {
  PENSTOCK_ASSIGN(const fs::path new_folder, make_session_folder(to));
  PartialCopy partial(new_folder);
  PENSTOCK_TRY(copy_session_file(process.file, new_folder, partial));
  partial.keep();
  return success();
}

}  // namespace penstock
