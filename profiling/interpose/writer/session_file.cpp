// How the session's file grows.
//
// Threads: a thread of the program in a wrapped call, perhaps inside malloc.
// Locks: new_block(), set_later_moment() and next_segment_block() take file_lock. All other functions are for
// its holder (session_file.hpp). No lock is taken under it.
// Memory: direct system calls only; no heap and no stdio.
// Signals: a signal may come at any instruction. Its handler gets no block while its own thread is here.
// Forks: a child that was forked by a call without a wrapper gets no block (is_own_session()).
// Crash: zeros are written to the file before a part of it is mapped, and a block's header before `file_end`
// (grow_to(), add_block()).
#include "profiling/interpose/writer/session_file.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "profiling/interpose/writer/system.hpp"
#include "profiling/memory_fence.hpp"

namespace penstock::interpose {

constinit File file;
constinit OwnedLock file_lock;
constinit int failure = 0;

namespace {

// After a small growth, the zeros just written are still in the cache when the first records overwrite them.
// But each growth is a separate mapping, and a process may have only some ten thousand mappings.
constexpr std::uint64_t kUsualGrowth = 512U << 10U;
constexpr std::uint64_t kMostGrowth = 16U << 20U;
constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 38U;
constexpr std::uint64_t kLeastReserved = 4U << 20U;

}  // namespace

std::uint64_t bytes_from_environment(const char* name, std::uint64_t otherwise) noexcept {
  const char* value = getenv(name);
  char* end = nullptr;
  const std::uint64_t bytes = value == nullptr ? 0 : strtoull(value, &end, 10);
  return value != nullptr && *value >= '0' && *value <= '9' && *end == 0 ? bytes : otherwise;
}

// Called before a file begins. PROT_NONE and NORESERVE: it takes addresses only, no memory.
bool reserve_addresses() noexcept {
  // If the address space is limited, the program itself needs most of it.
  rlimit limit{};
  std::uint64_t most = kMostReserved;
  if (system_call(SYS_prlimit64, 0, RLIMIT_AS, 0, as_argument(&limit)) == 0 &&
      limit.rlim_cur != RLIM_INFINITY) {
    most = limit.rlim_cur / 16 / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
  }
  for (std::uint64_t bytes = most; bytes >= kLeastReserved;
       bytes = bytes / 4 / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE) {
    const long at = system_call(SYS_mmap, 0, static_cast<long>(bytes), PROT_NONE,
                                MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (at > 0 || at < -4095) {
      session.base = reinterpret_cast<char*>(at);
      file.reserved = bytes;
      return true;
    }
  }
  return false;
}

namespace {

// Opens the session's file by its name. No descriptor is kept open, because programs close all that they
// find. The name may lead to another file by now (chroot, a mount), so device and inode are compared. The
// descriptor is open only for a moment. A fork of another thread at that time may inherit it; it is closed on
// exec.
long open_current_file(int flags) noexcept {
  long fd = system_call(SYS_openat, AT_FDCWD, as_argument(file.path), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags,
                        0600);
  if (fd >= 0 && fd <= STDERR_FILENO) {  // the program may be about to open one of these numbers
    const long higher = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    system_call(SYS_close, fd);
    fd = higher;
  }
  if (fd < 0) {
    return fd;
  }
  struct stat about {};
  const bool known = system_call(SYS_fstat, fd, as_argument(&about)) == 0;
  if (known && (flags & O_CREAT) != 0) {
    file.device = about.st_dev;
    file.number = about.st_ino;
    system_call(SYS_fchmod, fd, 0600);  // the umask may have removed bits
  } else if (!known || file.device != about.st_dev || file.number != about.st_ino) {
    system_call(SYS_close, fd);
    return -ENOENT;
  }
  return fd;
}

// Writes zeros to a part of the file. That allocates the part's space on the device, and takes half as long
// as touching new pages in a mapping. A signal may interrupt it (EINTR), which is not an error. The bytes
// count as this library's own.
bool write_zeros(long fd, std::uint64_t from, std::uint64_t bytes) noexcept {
  static const char zeros[PENSTOCK_BLOCK_GRANULE] = {};
  constexpr std::size_t kAtOnce = 64;
  iovec pieces[kAtOnce];
  for (std::uint64_t done = 0; done < bytes;) {
    std::size_t count = 0;
    for (std::uint64_t left = bytes - done; left != 0 && count < kAtOnce; ++count) {
      const std::uint64_t piece = left < sizeof(zeros) ? left : sizeof(zeros);
      pieces[count] = {.iov_base = const_cast<char*>(zeros), .iov_len = piece};
      left -= piece;
    }
    const long n = system_call(SYS_pwritev, fd, as_argument(pieces), static_cast<long>(count),
                               static_cast<long>(from + done), 0);
    if (n == -EINTR) {
      continue;
    }
    if (n <= 0) {
      failure = n < 0 ? static_cast<int>(-n) : ENOSPC;
      return false;
    }
    done += static_cast<std::uint64_t>(n);
    file.own_written += static_cast<std::uint64_t>(n);
    if (session.header != nullptr && file.bytes != 0) {
      // These bytes are not the program's.
      session.header->kernel_begin.wchar += static_cast<std::uint64_t>(n);
    }
  }
  return true;
}

// Maps the pages now, so that the program need not wait for each of them at its first write. For a file in
// memory (tmpfs), one read maps a stretch of pages, in a quarter of the time of single pages. For other files
// the kernel is asked to do it, if it can (Linux 5.14).
void fault_in_pages(char* at, std::uint64_t bytes) noexcept {
  if (file.in_memory) {
    constexpr std::uint64_t kStretch =
        65536;  // the kernel's fault_around_bytes: a stretch begins at a multiple of it
    const char* const end = at + bytes;
    for (const char* i = at; i < end; i += kStretch - reinterpret_cast<std::uint64_t>(i) % kStretch) {
      static_cast<void>(*static_cast<const volatile char*>(i));
    }
    return;
  }
#ifdef MADV_POPULATE_WRITE
  system_call(SYS_madvise, as_argument(at), static_cast<long>(bytes), MADV_POPULATE_WRITE);
#endif
}

}  // namespace

// Order: zeros are written before the new part is mapped. If the part were mapped first, a full disk would
// cause a SIGBUS at a later store in the program. file.bytes grows last, so that a block is never outside of
// the mapping. The system calls are direct, because mmap() itself is wrapped. If the process is killed in
// between, the file ends with zeros, which readers take for free blocks.
bool grow_to(std::uint64_t bytes, int flags) noexcept {
  // A write beyond the program's limit of file sizes would kill the program by SIGXFSZ.
  rlimit most{};
  if (bytes > file.reserved || bytes > file.limit ||
      (system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, as_argument(&most)) == 0 && bytes > most.rlim_cur)) {
    failure = EFBIG;
    return false;
  }
  const long fd = open_current_file(flags);
  if (fd < 0) {
    failure = static_cast<int>(-fd);
    return false;
  }
  if ((flags & O_CREAT) != 0) {
    constexpr decltype(statfs::f_type) kTmpfs = 0x01021994;
    struct statfs about {};
    file.in_memory = system_call(SYS_fstatfs, fd, as_argument(&about)) == 0 && about.f_type == kTmpfs;
  }
  const std::uint64_t growth = bytes - file.bytes;
  char* fresh = session.base + file.bytes;
  bool grown = write_zeros(fd, file.bytes, growth);
  if (grown) {
    const long at =
        system_call(SYS_mmap, as_argument(fresh), static_cast<long>(growth), PROT_READ | PROT_WRITE,
                    MAP_SHARED | MAP_FIXED, fd, static_cast<long>(file.bytes));
    grown = at > 0 || at < -4095;
    failure = grown ? failure : static_cast<int>(-at);
  }
  if (grown) {
    fault_in_pages(fresh, growth);
    file.bytes = bytes;
  } else {
    system_call(SYS_ftruncate, fd, static_cast<long>(file.bytes));  // frees the space of the zeros
  }
  system_call(SYS_close, fd);
  return grown;
}

// Called when the session ends. Pages after the new end stay mapped, but touching them would cause a SIGBUS.
// So file.bytes shrinks as well; these pages have no blocks.
void trim_file() noexcept {
  const std::uint64_t end = session.header->file_end;
  const long fd = end < file.bytes ? open_current_file(0) : -1;
  if (fd >= 0) {
    if (system_call(SYS_ftruncate, fd, static_cast<long>(end)) == 0) {
      file.bytes = end;
    }
    system_call(SYS_close, fd);
  }
}

// One system call. It is called when a block is made and at the end: a child that was forked without a
// wrapper must not write to its parent's file.
bool is_own_session() noexcept {
  return session.header->pid == static_cast<std::uint32_t>(system_call(SYS_getpid));
}

// file_lock is held. The file grows by a fraction of its size, or only by the block if there is no room for
// more. `magic` is stored before `file_end`. So a reader, also after a crash, finds no block before file_end
// that has no header.
penstock_block* add_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept {
  if (!is_own_session()) {
    return nullptr;
  }
  const std::uint64_t block_bytes = round_up_to_granules(bytes + sizeof(penstock_block));
  const std::uint64_t at = session.header->file_end;
  if (at + block_bytes > file.bytes) {
    std::uint64_t growth = file.bytes / 4;
    growth = growth > kUsualGrowth ? kUsualGrowth : growth;
    growth = growth < file.bytes / 64 ? file.bytes / 64 : growth;
    growth = round_up_to_granules(growth > kMostGrowth ? kMostGrowth : growth);
    growth = growth < block_bytes ? block_bytes : growth;
    if (!grow_to(file.bytes + growth, 0) && !grow_to(at + block_bytes, 0)) {
      __atomic_store_n(&session.header->no_room, static_cast<std::uint32_t>(failure), __ATOMIC_RELAXED);
      return nullptr;
    }
  }
  auto* block = at_offset<penstock_block>(at);
  block->bytes = block_bytes;
  block->used = 0;
  block->entry_bytes = entry_bytes;
  block->kind = static_cast<std::uint16_t>(kind);
  __atomic_store_n(&block->magic, PENSTOCK_BLOCK_MAGIC, __ATOMIC_RELEASE);
  __atomic_store_n(&session.header->file_end, at + block_bytes, __ATOMIC_RELEASE);
  return block;
}

// Called within an update, or with logs_lock held (add_thread()). thread_lives.cpp has the order of the
// locks.
penstock_block* new_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept {
  const LockGuard hold(file_lock);
  return hold.has_lock() ? add_block(kind, entry_bytes, bytes) : nullptr;
}

// file_lock is held. Readers take later[later_index]; the other one is written and then made the newest, so
// that a reader or a crash never finds a half-written pair.
void set_moment() noexcept {
  penstock_session_header& h = *session.header;
  const std::uint32_t next = 1 - (__atomic_load_n(&h.later_index, __ATOMIC_ACQUIRE) & 1U);
  h.later[next] = penstock_moment{.ticks = ticks(), .monotonic_ns = nanoseconds(CLOCK_MONOTONIC)};
  __atomic_store_n(&h.later_index, next, __ATOMIC_RELEASE);
}

// Called in any counted call, within an update. A handler whose own thread holds the lock stores nothing.
void set_later_moment() noexcept {
  const LockGuard hold(file_lock);
  if (hold.has_lock()) {
    set_moment();
  }
}

namespace {

constexpr std::uint64_t kUsualLimit = 256U << 20U;
constexpr std::uint64_t kLeastLimit = 8 * std::uint64_t{PENSTOCK_BLOCK_GRANULE};
constexpr std::uint64_t kMostBlock = 256U << 10U;
constexpr std::uint64_t kBlocksOfALimit =
    16;  // the trace limit allows at least this many blocks, so emptying one loses at most 1/16 of the calls

// The size of the next block: twice the last one, but not more than a fraction of the limit.
std::uint64_t segment_block_bytes(std::uint64_t last_bytes, std::uint64_t limit) noexcept {
  std::uint64_t most = kMostBlock;
  if (limit != 0 && limit / kBlocksOfALimit < most) {
    most = limit / kBlocksOfALimit / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
  }
  const std::uint64_t twice = last_bytes == 0 ? PENSTOCK_BLOCK_GRANULE : last_bytes * 2;
  const std::uint64_t want = twice > most ? most : twice;
  return want < PENSTOCK_BLOCK_GRANULE ? PENSTOCK_BLOCK_GRANULE : want;
}

penstock_block* add_segment_block(std::uint64_t bytes) noexcept {
  penstock_block* block =
      add_block(PENSTOCK_BLOCK_SEGMENTS, sizeof(penstock_segment), bytes - sizeof(penstock_block));
  if (block != nullptr) {
    file.segment_bytes += block->bytes;
  }
  return block;
}

void append_full_block(penstock_block* block) noexcept {
  const std::uint64_t at = offset_in_session(block);
  block->next = 0;
  if (file.newest_full != 0) {
    at_offset<penstock_block>(file.newest_full)->next = at;
  } else {
    file.oldest_full = at;
  }
  file.newest_full = at;
}

penstock_block* remove_oldest_full() noexcept {
  auto* block = at_offset<penstock_block>(file.oldest_full);
  file.oldest_full = block->next;
  if (file.oldest_full == 0) {
    file.newest_full = 0;
  }
  block->next = 0;
  return block;
}

// Another process may read the block meanwhile. It must never see a segment with parts of two calls. So
// `used` becomes 0 before `renewed` increases, and `renewed` increases before new segments are stored.
void empty_block(penstock_block* block) noexcept {
  count_drop(session.header->dropped_segments, block->used / sizeof(penstock_segment));
  __atomic_store_n(&block->used, std::uint64_t{0}, __ATOMIC_RELEASE);
  memory_fence(std::memory_order_seq_cst);
  __atomic_store_n(&block->renewed, block->renewed + 1, __ATOMIC_RELEASE);
  memory_fence(std::memory_order_seq_cst);
}

}  // namespace

std::uint64_t trace_limit_from_environment() noexcept {
  return bytes_from_environment("PENSTOCK_PROFILE_TRACE_LIMIT", kUsualLimit);
}

// Called within an update, by another_segment_block(). The list of full blocks changes only under file_lock.
penstock_block* next_segment_block(penstock_block* full) noexcept {
  const LockGuard hold(file_lock);
  if (!hold.has_lock() || !is_own_session()) {
    return nullptr;
  }
  std::uint64_t limit = session.header->trace_limit;
  limit = limit != 0 && limit < kLeastLimit ? kLeastLimit : limit;
  const std::uint64_t want = segment_block_bytes(full == nullptr ? 0 : full->bytes, limit);
  penstock_block* block =
      limit == 0 || file.segment_bytes + want <= limit ? add_segment_block(want) : nullptr;
  if (block == nullptr && file.oldest_full == 0) {
    if (full == nullptr) {
      return add_segment_block(PENSTOCK_BLOCK_GRANULE);
    }
    empty_block(full);
    return full;
  }
  if (full != nullptr) {
    append_full_block(full);
  }
  if (block == nullptr) {
    block = remove_oldest_full();
    empty_block(block);
  }
  return block;
}

}  // namespace penstock::interpose
