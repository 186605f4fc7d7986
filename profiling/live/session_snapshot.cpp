// Copies the files of a session while their processes write to them.
//
// Threads: the main thread of a penstock command. The recorded processes do not wait for the copy, and do not
// notice it. So a file may change during the copy. The code copies, compares and copies again until the parts
// match.
// Locks: none.
// Memory: may allocate.
// Ctrl-C: sets a flag that copy_bytes() checks; the unfinished copy is then removed.
#include "profiling/live/session_snapshot.hpp"

#include <fcntl.h>
#include <fmt/format.h>
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

// Maps the file and opens it as a session; nullopt if it is none. The view points into the mapping.
Result<std::optional<SessionView>> view_of(int fd, const std::string& path, MappedFile& file) {
  struct stat about {};
  std::optional<SessionView> view;
  if (::fstat(fd, &about) != 0) return errno_error(errno, "cannot look at", path);
  if (about.st_size == 0) return view;
  if (const int failed = file.map(fd, static_cast<std::size_t>(about.st_size)); failed != 0)
    return errno_error(failed, "cannot map", path);
  if (Result<SessionView> parsed = SessionView::parse(file.bytes()); parsed.ok()) view = *std::move(parsed);
  return view;
}

// For each block of segments, by its offset: how often the writer has emptied it.
using EmptiedCounts = std::map<std::uint64_t, std::uint64_t>;
Result<EmptiedCounts> emptied_counts(int fd, const std::string& path) {
  EmptiedCounts counts;
  MappedFile file;
  PENSTOCK_ASSIGN(const std::optional<SessionView> view, view_of(fd, path, file));
  if (!view) return counts;
  for (const SessionBlock& block : view->blocks())
    if (block.kind == PENSTOCK_BLOCK_SEGMENTS) counts.emplace(block.offset, block.times_emptied);
  return counts;
}

// A block that was emptied during the copy contains old and new segments. Such blocks are emptied in the
// copy, and their segments are counted as dropped. `dropped`: the source's own number of dropped segments
// when `after` was read.
Result<void> clear_reused_blocks(int copy, const EmptiedCounts& before, const EmptiedCounts& after,
                                 std::uint64_t dropped, const std::string& to) {
  const auto at = [](const EmptiedCounts& counts, std::uint64_t offset) {
    const auto found = counts.find(offset);
    return found == counts.end() ? 0 : found->second;
  };
  PENSTOCK_ASSIGN(const EmptiedCounts copies, emptied_counts(copy, to));
  for (const auto& [offset, copied] : copies) {
    if (at(before, offset) == copied && at(after, offset) == copied) continue;
    std::uint64_t used = 0;
    const off_t place = static_cast<off_t>(offset + offsetof(penstock_block, used));
    const std::uint64_t none = 0;
    if (::pread(copy, &used, sizeof used, place) != static_cast<ssize_t>(sizeof used) ||
        ::pwrite(copy, &none, sizeof none, place) != static_cast<ssize_t>(sizeof none))
      return errno_error(errno, "cannot write", to);
    // If the block was emptied again since, the source has counted these segments itself.
    if (at(after, offset) == copied) dropped += used / sizeof(penstock_segment);
  }
  if (::pwrite(copy, &dropped, sizeof dropped, offsetof(penstock_session_header, dropped_segments)) !=
      static_cast<ssize_t>(sizeof dropped))
    return errno_error(errno, "cannot write", to);
  return success();
}

std::uint64_t dropped_in(int fd, std::uint64_t otherwise) {
  penstock_session_header header{};
  return read_header(fd, header) ? header.dropped_segments : otherwise;
}

Result<void> write_at(int to, const void* bytes, std::size_t count, std::uint64_t offset,
                      const std::string& target) {
  const auto* from = static_cast<const char*>(bytes);
  for (std::size_t done = 0; done < count;) {
    const ssize_t wrote = retry_eintr(
        [&] { return ::pwrite(to, from + done, count - done, static_cast<off_t>(offset + done)); });
    if (wrote <= 0) return errno_error(wrote < 0 ? errno : ENOSPC, "cannot write", target);
    done += static_cast<std::size_t>(wrote);
  }
  return success();
}

Result<void> copy_bytes(int from, int to, const std::string& source, const std::string& target) {
  std::vector<char> buffer(1 << 20);
  for (std::uint64_t at = 0;;) {
    PENSTOCK_TRY(check_interrupt());
    const ssize_t got = retry_eintr([&] { return ::read(from, buffer.data(), buffer.size()); });
    if (got < 0) return errno_error(errno, "cannot read", source);
    if (got == 0) return success();
    PENSTOCK_TRY(write_at(to, buffer.data(), static_cast<std::size_t>(got), at, target));
    at += static_cast<std::uint64_t>(got);
  }
}

// The kernel's counts and the header at the same moment. The library adds the bytes that it writes to the
// session's file to kernel_begin. So this repeats until kernel_begin is the same in two readings.
std::optional<penstock_kernel_io> current_kernel_io(int session, penstock_session_header& header) {
  constexpr int kTries = 100;
  penstock_kernel_io kernel{};
  for (int i = 0; i < kTries; ++i) {
    const std::uint64_t before = header.kernel_begin.wchar;
    if (!read_kernel_io(header.pid, kernel) || !read_header(session, header)) return std::nullopt;
    if (header.kernel_begin.wchar == before && i != 0) break;
  }
  return kernel;
}

// Updates a copy from its source. CopyPart::segments copies the blocks of segments that have changed.
// CopyPart::other_blocks copies all blocks of other kinds and the header. The second takes much less time
// than a whole copy, so the counters are all from nearly one moment.
enum class CopyPart { segments, other_blocks };
Result<void> refresh_copy(CopyPart part, int from, int copy, const std::string& source,
                          const std::string& target) {
  MappedFile file;
  PENSTOCK_ASSIGN(const std::optional<SessionView> view, view_of(from, source, file));
  if (!view) return success();
  const std::span<const std::byte> bytes = file.bytes();
  for (const SessionBlock& block : view->blocks()) {
    const bool calls = block.kind == PENSTOCK_BLOCK_SEGMENTS;
    if (calls != (part == CopyPart::segments)) continue;
    penstock_block copied{};
    const bool same = calls &&
                      ::pread(copy, &copied, sizeof copied, static_cast<off_t>(block.offset)) ==
                          static_cast<ssize_t>(sizeof copied) &&
                      copied.magic == PENSTOCK_BLOCK_MAGIC && copied.used == block.entries.size() &&
                      copied.renewed == block.times_emptied;
    if (!same)
      PENSTOCK_TRY(write_at(copy, bytes.data() + block.offset, sizeof copied + block.entries.size(),
                            block.offset, target));
  }
  if (part == CopyPart::segments) return success();
  // New blocks of segments since the first copy become free blocks in the copy.
  const auto end = static_cast<off_t>(view->header().file_end);
  struct stat about {};
  if (::fstat(copy, &about) != 0 || (about.st_size < end && ::ftruncate(copy, end) != 0))
    return errno_error(errno, "cannot write", target);
  return write_at(copy, bytes.data(), std::min(bytes.size(), sizeof(penstock_session_header)), 0, target);
}

// Deletes the added files and the folder in its destructor, unless keep() was called.
class PartialCopy {
 public:
  explicit PartialCopy(fs::path folder) : folder_(std::move(folder)) {}
  ~PartialCopy() {
    if (keeps_) return;
    for (const fs::path& file : files_) ::unlink(file.c_str());
    ::rmdir(folder_.c_str());
  }
  PartialCopy(const PartialCopy&) = delete;
  PartialCopy& operator=(const PartialCopy&) = delete;
  void add(const fs::path& file) { files_.push_back(file); }
  void keep() { keeps_ = true; }

 private:
  fs::path folder_;
  std::vector<fs::path> files_;
  bool keeps_ = false;
};

// Copies one file of a session while its process may continue. The first copy has everything that the header
// reported at that time. Then the kernel's counters are read, and directly afterwards the changes since the
// first copy are copied. So the counters, the kernel's counts and the coverage are from the same moment.
Result<void> copy_session_file(const fs::path& from, const fs::path& folder, PartialCopy& partial) {
  const fs::path to = folder / from.filename();
  const Fd in(retry_eintr([&] { return ::open(from.c_str(), O_RDONLY | kSessionOpenFlags); }));
  struct stat about {};
  if (!in || ::fstat(in.get(), &about) != 0) return errno_error(errno, "cannot read", from.string());
  penstock_session_header header{};
  char magic[sizeof header.magic] = {};
  constexpr char kNotYet[sizeof magic] = {};
  if (!S_ISREG(about.st_mode) || ::pread(in.get(), magic, sizeof magic, 0) != sizeof magic ||
      std::memcmp(magic, kNotYet, sizeof magic) == 0)
    return success();  // its process is still creating the file
  const bool goes_on = read_header(in.get(), header) && header.state == PENSTOCK_RUNNING;
  Fd out(retry_eintr([&] { return ::open(to.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600); }));
  if (!out) return errno_error(errno, "cannot write", to.string());
  partial.add(to);
  PENSTOCK_TRY(copy_bytes(in.get(), out.get(), from.string(), to.string()));
  std::optional<penstock_kernel_io> kernel;
  std::int64_t now_ns = 0;
  if (goes_on) {
    PENSTOCK_ASSIGN(const EmptiedCounts before, emptied_counts(in.get(), from.string()));
    PENSTOCK_TRY(refresh_copy(CopyPart::segments, in.get(), out.get(), from.string(), to.string()));
    if (field_text(header.host) == this_host() && process_runs(header.pid, header.process_start))
      kernel = current_kernel_io(in.get(), header);
    now_ns = span_ns(std::chrono::steady_clock::now());
    PENSTOCK_TRY(refresh_copy(CopyPart::other_blocks, in.get(), out.get(), from.string(), to.string()));
    // Both values should be from one moment. So it repeats until `dropped` did not change, at most kTries
    // times.
    constexpr int kTries = 100;
    EmptiedCounts after;
    std::uint64_t dropped = header.dropped_segments;
    for (int i = 0; i < kTries; ++i) {
      PENSTOCK_ASSIGN(after, emptied_counts(in.get(), from.string()));
      const std::uint64_t before_look = std::exchange(dropped, dropped_in(in.get(), dropped));
      if (i != 0 && dropped == before_look) break;
    }
    PENSTOCK_TRY(clear_reused_blocks(out.get(), before, after, dropped, to.string()));
    if (kernel)
      PENSTOCK_TRY(write_at(out.get(), &header.kernel_begin, sizeof header.kernel_begin,
                            offsetof(penstock_session_header, kernel_begin), to.string()));
  }
  if (const int failed = out.close(); failed != 0) return errno_error(failed, "cannot write", to.string());
  return kernel ? complete_file(to, *kernel, now_ns) : success();
}

}  // namespace

Result<void> snapshot_session(const fs::path& folder, const fs::path& to) {
  PENSTOCK_ASSIGN(const std::vector<fs::path> files, session_files(folder));
  if (files.empty())
    return make_error(Errc::not_found, fmt::format("no process left a file in '{}'", folder.string()));
  PENSTOCK_ASSIGN(const fs::path fresh, make_session_folder(to));
  PartialCopy partial(fresh);
  for (const fs::path& file : files) PENSTOCK_TRY(copy_session_file(file, fresh, partial));
  if (const SessionNote note = read_note(folder); !note.started.empty())
    PENSTOCK_TRY(write_note(fresh, note));
  partial.keep();
  return success();
}

Result<void> snapshot_process(const RecordingProcess& process, const fs::path& to) {
  PENSTOCK_ASSIGN(const fs::path fresh, make_session_folder(to));
  PartialCopy partial(fresh);
  PENSTOCK_TRY(copy_session_file(process.file, fresh, partial));
  partial.keep();
  return success();
}

}  // namespace penstock
