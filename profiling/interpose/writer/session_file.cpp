// Lets the session's file grow, and adds blocks to it.
//
// Threads: a thread of the program in a wrapped call (perhaps inside malloc), when the library is loaded, or
// when the process ends; or the holder of Control (recording.hpp).
// Locks: new_block(), set_later_moment() and next_segment_block() take file_lock. The caller of any other
// function holds it, or is the only thread that records (session_file.hpp). One exception: end_session()
// calls is_own_session() before it takes the lock. No other lock is taken under file_lock.
// Memory: direct system calls only; no heap and no stdio.
// Signals: a signal may come at any instruction. A handler gets no block if its own thread holds file_lock.
// Forks: a child that was forked by a call without a wrapper gets no block (is_own_session()).
// Crash: the process may be killed at any moment. Zeros are written to the file before a part of it is
// mapped, and a block's header is written before `file_end` (grow_to(), add_block()).
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
constinit int file_errno = 0;

namespace {

// kUsualGrowthBytes is the number of bytes by which the file usually grows at once, kMostGrowthBytes the
// largest such number. Small steps are faster: the zeros that were just written are still in the cache when
// the program's records overwrite them. But each growth makes one more mapping, and the number of mappings of
// a process is limited (about 65,000).
constexpr uint64_t kUsualGrowthBytes = 512U << 10U;
constexpr uint64_t kMostGrowthBytes = 16U << 20U;
constexpr uint64_t kMostReservedBytes = uint64_t{1} << 38U;

}  // namespace

uint64_t bytes_from_environment(const char* name, uint64_t default_bytes) noexcept {
  const char* value = getenv(name);
  char* end = nullptr;
  const uint64_t bytes = value == nullptr ? 0 : strtoull(value, &end, 10);
  return value != nullptr && *value >= '0' && *value <= '9' && *end == 0 ? bytes : default_bytes;
}

// Reserves the range of addresses at which the next session file will be mapped: the largest that the kernel
// gives, within the limits below. This takes addresses but no memory (PROT_NONE, MAP_NORESERVE).
bool reserve_addresses() noexcept {
  // If the process has a limit of address space, at most 1/16 of it is reserved here: the program needs the
  // rest.
  rlimit limit{};
  uint64_t most_bytes = kMostReservedBytes;
  if (system_call(SYS_prlimit64, 0, RLIMIT_AS, 0, as_argument(&limit)) == 0 &&
      limit.rlim_cur != RLIM_INFINITY) {
    most_bytes = limit.rlim_cur / 16 / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
  }
  for (uint64_t bytes = most_bytes; bytes >= kLeastReservedBytes;
       bytes = bytes / 4 / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE) {
    const long address =
        system_call(SYS_mmap, 0, long(bytes), PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (address > 0 || address < -4095) {
      session.base = reinterpret_cast<char*>(address);
      file.reserved_bytes = bytes;
      return true;
    }
  }
  return false;
}

void KeptDescriptor::keep(long fd) noexcept {
  constexpr long kFirstNumber = 500;
  struct stat status {};
  if (fd < 0) {
    return;
  }
  long higher_fd = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, kFirstNumber);
  if (higher_fd < 0) {  // the process may have a lower limit
    higher_fd = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  }
  system_call(SYS_close, fd);
  if (higher_fd >= 0 && system_call(SYS_fstat, higher_fd, as_argument(&status)) == 0) {
    fd_ = higher_fd;
    device_ = status.st_dev;
    inode_ = status.st_ino;
  }
}

long KeptDescriptor::get() const noexcept {
  struct stat status {};
  return fd_ >= 0 && system_call(SYS_fstat, fd_, as_argument(&status)) == 0 && status.st_dev == device_ &&
                 status.st_ino == inode_
             ? fd_
             : -1;
}

void KeptDescriptor::close() noexcept {
  if (const long fd = get(); fd >= 0) {
    system_call(SYS_close, fd);
  }
  fd_ = -1;
}

namespace {

// Opens the session's file by its name, for a moment. Usually no descriptor is kept open (kept_file), because
// programs close all descriptors that they find. The name may lead to another file by now (chroot, a mount),
// so device and inode are compared. If another thread forks at that moment, its child inherits the
// descriptor, which is closed on exec.
long open_current_file(int flags) noexcept {
  long fd = system_call(SYS_openat, AT_FDCWD, as_argument(file.path), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags,
                        0600);
  if (fd >= 0 && fd <= STDERR_FILENO) {  // the program may be about to use descriptors 0 to 2
    const long higher_fd = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    system_call(SYS_close, fd);
    fd = higher_fd;
  }
  const auto reopen_kept = [flags](long error) {
    const long kept_fd = (flags & O_CREAT) != 0 ? -1 : file.kept_file.get();
    return kept_fd < 0 ? error : system_call(SYS_fcntl, kept_fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  };
  if (fd < 0) {
    return reopen_kept(fd);
  }
  struct stat status {};
  const bool has_stat = system_call(SYS_fstat, fd, as_argument(&status)) == 0;
  if (has_stat && (flags & O_CREAT) != 0) {
    file.device = status.st_dev;
    file.inode = status.st_ino;
    system_call(SYS_fchmod, fd, 0600);  // the umask may have removed some permissions
  } else if (!has_stat || file.device != status.st_dev || file.inode != status.st_ino) {
    system_call(SYS_close, fd);
    return reopen_kept(-ENOENT);
  }
  return fd;
}

// Writes zeros to a part of the file. That allocates the part's space on the device, and takes half as long
// as touching new pages in a mapping. If a signal interrupts the write (EINTR), the write is continued. The
// bytes are added to file.own_written_bytes.
bool write_zeros(long fd, uint64_t from, uint64_t bytes) noexcept {
  static const char zeros[PENSTOCK_BLOCK_GRANULE] = {};
  constexpr size_t kPiecesPerWrite = 64;
  iovec pieces[kPiecesPerWrite];
  for (uint64_t done_bytes = 0; done_bytes < bytes;) {
    size_t count = 0;
    for (uint64_t left_bytes = bytes - done_bytes; left_bytes != 0 && count < kPiecesPerWrite; ++count) {
      const uint64_t piece_bytes = left_bytes < sizeof(zeros) ? left_bytes : sizeof(zeros);
      pieces[count] = {.iov_base = const_cast<char*>(zeros), .iov_len = piece_bytes};
      left_bytes -= piece_bytes;
    }
    const long n = system_call(SYS_pwritev, fd, as_argument(pieces), long(count), long(from + done_bytes), 0);
    if (n == -EINTR) {
      continue;
    }
    if (n <= 0) {
      file_errno = n < 0 ? int(-n) : ENOSPC;
      return false;
    }
    done_bytes += uint64_t(n);
    file.own_written_bytes += uint64_t(n);
    if (session.header != nullptr && file.bytes != 0) {
      // The kernel counts these bytes in wchar, but the program did not write them. So they are added to the
      // session's first value of wchar, which readers subtract from the last one.
      session.header->kernel_begin.wchar += uint64_t(n);
    }
  }
  return true;
}

// Makes the kernel map the pages now, so that the program need not wait for each page at its first write. For
// a file in memory (tmpfs), one read maps 64 KiB, which takes a quarter of the time of mapping single pages.
// For other files madvise() maps the pages, from Linux 5.14 on.
void fault_in_pages(char* begin, uint64_t bytes) noexcept {
  if (file.is_in_memory) {
    // The bytes that the kernel maps at one read: its default of fault_around_bytes. Their address is aligned
    // to this number.
    constexpr uint64_t kStretchBytes = 65536;
    const char* const end = begin + bytes;
    for (const char* i = begin; i < end; i += kStretchBytes - reinterpret_cast<uint64_t>(i) % kStretchBytes) {
      static_cast<void>(*static_cast<const volatile char*>(i));
    }
    return;
  }
#ifdef MADV_POPULATE_WRITE
  system_call(SYS_madvise, as_argument(begin), long(bytes), MADV_POPULATE_WRITE);
#endif
}

}  // namespace

// Grows the file to `bytes`. The system calls are direct, because mmap() itself is wrapped.
// Order: (1) zeros are written to the new part, (2) it is mapped, (3) file.bytes grows. If the part were
// mapped before the zeros are written, a full disk would cause a SIGBUS at a later store in the program.
// file.bytes grows last, so that no block is ever outside of the mapping.
// Crash: if the process is killed between two of these steps, the file ends with zeros, which readers take
// for free blocks.
bool grow_to(uint64_t bytes, int flags) noexcept {
  // The process may have a limit of file sizes. A write beyond it would kill the program by SIGXFSZ.
  rlimit limit{};
  if (bytes > file.reserved_bytes || bytes > file.size_limit ||
      (system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, as_argument(&limit)) == 0 && bytes > limit.rlim_cur)) {
    file_errno = EFBIG;
    return false;
  }
  const long fd = open_current_file(flags);
  if (fd < 0) {
    file_errno = int(-fd);
    return false;
  }
  if ((flags & O_CREAT) != 0) {
    constexpr decltype(statfs::f_type) kTmpfsType = 0x01021994;
    struct statfs status {};
    file.is_in_memory =
        system_call(SYS_fstatfs, fd, as_argument(&status)) == 0 && status.f_type == kTmpfsType;
  }
  const uint64_t growth = bytes - file.bytes;
  char* new_part = session.base + file.bytes;
  bool has_grown = write_zeros(fd, file.bytes, growth);
  if (has_grown) {
    const long address = system_call(SYS_mmap, as_argument(new_part), long(growth), PROT_READ | PROT_WRITE,
                                     MAP_SHARED | MAP_FIXED, fd, long(file.bytes));
    has_grown = address > 0 || address < -4095;
    file_errno = has_grown ? file_errno : int(-address);
  }
  if (has_grown) {
    fault_in_pages(new_part, growth);
    file.bytes = bytes;
  } else {
    system_call(SYS_ftruncate, fd,
                long(file.bytes));  // frees the space that the zeros took
  }
  system_call(SYS_close, fd);
  return has_grown;
}

// Cuts off the unused end of the file. Called when the session ends. The pages of that end stay mapped, but
// touching them would cause a SIGBUS. So file.bytes becomes smaller as well, and no block is made in these
// pages.
void trim_file() noexcept {
  const uint64_t end = session.header->file_end;
  const long fd = end < file.bytes ? open_current_file(0) : -1;
  if (fd >= 0) {
    if (system_call(SYS_ftruncate, fd, long(end)) == 0) {
      file.bytes = end;
    }
    system_call(SYS_close, fd);
  }
}

// Whether this process made the file. False in a child that was forked by a call without a wrapper; it must
// not write to its parent's file. Called when a block is made and when the session ends. Makes one system
// call.
bool is_own_session() noexcept {
  // Without system calls the answer is not known. A wrapped fork has left the parent's session by then.
  return is_sealed.load(std::memory_order_relaxed) ||
         session.header->pid == uint32_t(system_call(SYS_getpid));
}

// Adds a block at the end of the file. The caller holds file_lock. If needed, the file grows by a fraction of
// its size, or only by the block if there is no room for more. The block's header is stored before
// `file_end`, so readers find a header in each block before file_end, also after a crash.
penstock_block* add_block(penstock_block_kind kind, uint16_t entry_bytes, uint64_t bytes) noexcept {
  if (!is_own_session()) {
    return nullptr;
  }
  const uint64_t block_bytes = round_up_to_granules(bytes + sizeof(penstock_block));
  const uint64_t offset = session.header->file_end;
  if (offset + block_bytes > file.bytes) {
    uint64_t growth = file.bytes / 4;
    growth = growth > kUsualGrowthBytes ? kUsualGrowthBytes : growth;
    growth = growth < file.bytes / 64 ? file.bytes / 64 : growth;
    growth = round_up_to_granules(growth > kMostGrowthBytes ? kMostGrowthBytes : growth);
    growth = growth < block_bytes ? block_bytes : growth;
    if (!grow_to(file.bytes + growth, 0) && !grow_to(offset + block_bytes, 0)) {
      __atomic_store_n(&session.header->no_room, uint32_t(file_errno), __ATOMIC_RELAXED);
      return nullptr;
    }
  }
  auto* block = at_offset<penstock_block>(offset);
  block->bytes = block_bytes;
  block->used = 0;
  block->entry_bytes = entry_bytes;
  block->kind = uint16_t(kind);
  __atomic_store_n(&block->magic, PENSTOCK_BLOCK_MAGIC, __ATOMIC_RELEASE);
  __atomic_store_n(&session.header->file_end, offset + block_bytes, __ATOMIC_RELEASE);
  return block;
}

// Takes file_lock and adds a block (add_block()). The caller holds an Update (counting.hpp), or is the thread
// that changes the session. The caller may hold logs_lock (add_thread()); file_lock is always taken after
// logs_lock.
penstock_block* new_block(penstock_block_kind kind, uint16_t entry_bytes, uint64_t bytes) noexcept {
  const LockGuard guard(file_lock);
  return guard.has_lock() ? add_block(kind, entry_bytes, bytes) : nullptr;
}

// Stores the present time in the header: the session's ticks and CLOCK_MONOTONIC. The caller holds file_lock.
// The header has room for two such pairs, and readers use later[later_index]. This function writes the other
// pair, and then changes later_index. So a reader never finds a half-written pair, also after a crash.
void set_moment() noexcept {
  if (is_sealed.load(std::memory_order_relaxed)) {
    return;  // the clock cannot be read
  }
  penstock_session_header& h = *session.header;
  const uint32_t next_index = 1 - (__atomic_load_n(&h.later_index, __ATOMIC_ACQUIRE) & 1U);
  __atomic_store_n(&h.later[next_index].ticks, ticks(),
                   __ATOMIC_RELAXED);  // note_moment() reads it at any time
  h.later[next_index].monotonic_ns = nanoseconds(CLOCK_MONOTONIC);
  __atomic_store_n(&h.later_index, next_index, __ATOMIC_RELEASE);
}

// Takes file_lock and stores the present time (set_moment()). Called in counted calls, within an update. In a
// handler whose own thread holds the lock, it stores nothing.
void set_later_moment() noexcept {
  const LockGuard guard(file_lock);
  if (guard.has_lock()) {
    set_moment();
  }
}

namespace {

constexpr uint64_t kDefaultTraceLimitBytes = 256U << 20U;
constexpr uint64_t kLeastTraceLimitBytes = 8 * uint64_t{PENSTOCK_BLOCK_GRANULE};
constexpr uint64_t kMostBlockBytes = 256U << 10U;
// A block is so small that at least this many blocks fit in the trace limit. So if a block is emptied, at
// most 1/16 of the recorded calls are lost.
constexpr uint64_t kLeastBlocksInLimit = 16;

// The size of the next block of segments: twice the size of the last one, but at most the trace limit /
// kLeastBlocksInLimit.
uint64_t segment_block_bytes(uint64_t last_bytes, uint64_t limit) noexcept {
  uint64_t most_bytes = kMostBlockBytes;
  if (limit != 0 && limit / kLeastBlocksInLimit < most_bytes) {
    most_bytes = limit / kLeastBlocksInLimit / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
  }
  const uint64_t doubled_bytes = last_bytes == 0 ? PENSTOCK_BLOCK_GRANULE : last_bytes * 2;
  const uint64_t wanted_bytes = doubled_bytes > most_bytes ? most_bytes : doubled_bytes;
  return wanted_bytes < PENSTOCK_BLOCK_GRANULE ? PENSTOCK_BLOCK_GRANULE : wanted_bytes;
}

penstock_block* add_segment_block(uint64_t bytes) noexcept {
  penstock_block* block =
      add_block(PENSTOCK_BLOCK_SEGMENTS, sizeof(penstock_segment), bytes - sizeof(penstock_block));
  if (block != nullptr) {
    file.segment_bytes += block->bytes;
  }
  return block;
}

void append_full_block(penstock_block* block) noexcept {
  const uint64_t offset = offset_in_session(block);
  block->next = 0;
  if (file.newest_full_block != 0) {
    at_offset<penstock_block>(file.newest_full_block)->next = offset;
  } else {
    file.oldest_full_block = offset;
  }
  file.newest_full_block = offset;
}

penstock_block* remove_oldest_full() noexcept {
  auto* block = at_offset<penstock_block>(file.oldest_full_block);
  file.oldest_full_block = block->next;
  if (file.oldest_full_block == 0) {
    file.newest_full_block = 0;
  }
  block->next = 0;
  return block;
}

// Empties a block, so that new segments can be stored in it. The lost segments count as dropped. Another
// process may read the block meanwhile, and must detect that its segments change. So `used` becomes 0 before
// `renewed` increases, and `renewed` increases before new segments are stored.
void empty_block(penstock_block* block) noexcept {
  count_drop(session.header->dropped_segments, block->used / sizeof(penstock_segment));
  __atomic_store_n(&block->used, uint64_t{0}, __ATOMIC_RELEASE);
  memory_fence(std::memory_order_seq_cst);
  __atomic_store_n(&block->renewed, block->renewed + 1, __ATOMIC_RELEASE);
  memory_fence(std::memory_order_seq_cst);
}

}  // namespace

uint64_t trace_limit_from_environment() noexcept {
  return bytes_from_environment("PENSTOCK_PROFILE_TRACE_LIMIT", kDefaultTraceLimitBytes);
}

// Gives a thread another block for its segments: a new one below the trace limit, otherwise the oldest full
// one (session.hpp). Called by another_segment_block(), which holds an Update. The list of full blocks
// changes only under file_lock.
penstock_block* next_segment_block(penstock_block* full_block) noexcept {
  const LockGuard guard(file_lock);
  if (!guard.has_lock() || !is_own_session()) {
    return nullptr;
  }
  uint64_t limit = session.header->trace_limit;
  limit = limit != 0 && limit < kLeastTraceLimitBytes ? kLeastTraceLimitBytes : limit;
  const uint64_t wanted_bytes = segment_block_bytes(full_block == nullptr ? 0 : full_block->bytes, limit);
  penstock_block* block =
      limit == 0 || file.segment_bytes + wanted_bytes <= limit ? add_segment_block(wanted_bytes) : nullptr;
  if (block == nullptr && file.oldest_full_block == 0) {
    if (full_block == nullptr) {
      return add_segment_block(PENSTOCK_BLOCK_GRANULE);
    }
    empty_block(full_block);
    return full_block;
  }
  if (full_block != nullptr) {
    append_full_block(full_block);
  }
  if (block == nullptr) {
    block = remove_oldest_full();
    empty_block(block);
  }
  return block;
}

}  // namespace penstock::interpose
