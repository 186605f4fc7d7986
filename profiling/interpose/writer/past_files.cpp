// Session files that have ended stay mapped for a while, because running calls may still write to them. The
// functions here (session_lifetime.hpp) keep a list of these files and unmap them later.
//
// Threads: the holder of Control, with all signals blocked, while session.is_changing is set.
#include <sys/mman.h>

#include <span>

#include "profiling/interpose/writer/session_file.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

constexpr size_t kMostPastFiles = 4096;
constinit std::span<char> past_files[kMostPastFiles];
size_t past_file_count = 0;

}  // namespace

void stop_session() noexcept {
  end_session(PENSTOCK_STOPPED);
  const LockGuard guard(file_lock);
  // All addresses after the end of the file are unmapped. Some of them may have pages that trim_file() has
  // cut off. No thread uses these pages, because all blocks end before file.bytes.
  system_call(SYS_munmap, as_argument(session.base + file.bytes), long(file.reserved_bytes - file.bytes));
  if (past_file_count < kMostPastFiles) {
    past_files[past_file_count++] = {session.base, size_t(file.bytes)};
  }
}

void unmap_past_files() noexcept {
  for (size_t i = 0; i < past_file_count; ++i) {
    system_call(SYS_mmap, as_argument(past_files[i].data()), long(past_files[i].size()),
                PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE, -1, 0);
  }
}

void reclaim_sessions(bool (*is_needed)(const char* base)) noexcept {
  // The newest few files stay mapped, because a close() that is running now has a pointer to counters in one
  // of them.
  constexpr size_t kNewestKept = 8;
  size_t kept_count = 0;
  for (size_t i = 0; i < past_file_count; ++i) {
    if (i + kNewestKept >= past_file_count || past_files[i].data() == session.base ||
        is_needed(past_files[i].data())) {
      past_files[kept_count++] = past_files[i];
    } else {
      system_call(SYS_munmap, as_argument(past_files[i].data()), long(past_files[i].size()));
    }
  }
  past_file_count = kept_count;
}

}  // namespace penstock::interpose
