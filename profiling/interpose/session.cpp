#include "profiling/interpose/session.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "profiling/interpose/owned_lock.hpp"
#include "profiling/interpose/system.hpp"
#include "profiling/interpose/ticks.hpp"

namespace penstock::interpose {

constinit Session session;
constinit std::atomic<bool> session_changes{false};

namespace {

constexpr std::uint64_t kFirstBytes = 8 * std::uint64_t{PENSTOCK_BLOCK_GRANULE};
// What has just been written is still in the processor's cache when the first records come to stand there;
// but each growth is a mapping of its own, of which a process has some ten thousands.
constexpr std::uint64_t kUsualGrowth = 512U << 10U;
constexpr std::uint64_t kMostGrowth = 16U << 20U;
constexpr std::uint64_t kMostReserved = std::uint64_t{1} << 38U;
constexpr std::uint64_t kLeastReserved = 4U << 20U;

// What only the thread that holds the lock touches.
struct File {
  char path[1152] = {};
  std::uint64_t reserved = 0;
  std::uint64_t bytes = 0;  // that the file has and that are mapped
  std::uint64_t limit = 0;  // the file does not grow beyond
  std::uint64_t ticks_per_s = 0;
  dev_t device = 0;
  ino_t number = 0;
  std::uint64_t own_read = 0;       // bytes that the kernel adds to rchar for what is read here
  std::uint64_t own_written = 0;    // and to wchar
  std::uint64_t read_to_begin = 0;  // of the former, since this file was begun to be
  bool in_memory = false;           // it lies on tmpfs
  penstock_block* events = nullptr;
};
constinit File file;
constinit OwnedLock file_lock;
constinit int failure = 0;  // errno of the last file that could not be begun

void copy_text(char* to, std::size_t room, const char* from) noexcept {
  const std::size_t length = strnlen(from, room - 1);
  memcpy(to, from, length);
  to[length] = 0;
}

// Reads what a file of /proc says; the bytes read.
std::size_t read_text(const char* path, char* to, std::size_t room) noexcept {
  const long fd = system_call(SYS_openat, AT_FDCWD, word(path), O_RDONLY | O_CLOEXEC);
  if (fd < 0) {
    return 0;
  }
  std::size_t all = 0;
  while (all < room) {
    const long n = system_call(SYS_read, fd, word(to + all), static_cast<long>(room - all));
    if (n <= 0) {
      break;
    }
    all += static_cast<std::size_t>(n);
  }
  system_call(SYS_close, fd);
  file.own_read += all;
  file.read_to_begin += all;
  return all;
}

bool read_kernel_io(penstock_kernel_io& io) noexcept {
  char text[512] = {};
  if (read_text("/proc/self/io", text, sizeof(text) - 1) == 0) {
    return false;
  }
  const auto value = [&text](const char* name) -> std::uint64_t {
    const char* at = strstr(text, name);
    return at == nullptr ? 0 : strtoull(at + strlen(name), nullptr, 10);
  };
  io = penstock_kernel_io{.rchar = value("rchar: "),
                          .wchar = value("wchar: "),
                          .syscr = value("syscr: "),
                          .syscw = value("syscw: "),
                          .read_bytes = value("\nread_bytes: "),
                          .write_bytes = value("\nwrite_bytes: ")};
  return true;
}

std::uint64_t process_start() noexcept {
  char text[1024] = {};
  read_text("/proc/self/stat", text, sizeof(text) - 1);
  const char* at = strrchr(text, ')');  // a command's name may hold anything
  for (int field = 2; at != nullptr && field < 22; ++field) {
    at = strchr(at + 1, ' ');
  }
  return at == nullptr ? 0 : strtoull(at, nullptr, 10);
}

bool reserve() noexcept {
  // Where the program's addresses are limited, little of them is ours.
  rlimit limit{};
  std::uint64_t most = kMostReserved;
  if (system_call(SYS_prlimit64, 0, RLIMIT_AS, 0, word(&limit)) == 0 && limit.rlim_cur != RLIM_INFINITY) {
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

// The session's file, by its name: no descriptor is kept, since programs close all they find. It is the same
// file only if it has the same number on the same device: the name may mean another one by now (chroot, a
// mount).
long open_own(int flags) noexcept {
  long fd = system_call(SYS_openat, AT_FDCWD, word(file.path), O_RDWR | O_CLOEXEC | O_NOFOLLOW | flags, 0600);
  if (fd >= 0 && fd <= STDERR_FILENO) {  // these numbers are what somebody is about to open
    const long higher = system_call(SYS_fcntl, fd, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
    system_call(SYS_close, fd);
    fd = higher;
  }
  if (fd < 0) {
    return fd;
  }
  struct stat about {};
  const bool known = system_call(SYS_fstat, fd, word(&about)) == 0;
  if (known && (flags & O_CREAT) != 0) {
    file.device = about.st_dev;
    file.number = about.st_ino;
    system_call(SYS_fchmod, fd, 0600);  // whatever the umask is
  } else if (!known || file.device != about.st_dev || file.number != about.st_ino) {
    system_call(SYS_close, fd);
    return -ENOENT;
  }
  return fd;
}

// Writes so many zeros there, which takes their place on the device and half the time of pages that are first
// touched in a mapping.
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
    const long n = system_call(SYS_pwritev, fd, word(pieces), static_cast<long>(count),
                               static_cast<long>(from + done), 0);
    if (n == -EINTR) {
      continue;
    }
    if (n <= 0) {
      return false;
    }
    done += static_cast<std::uint64_t>(n);
    file.own_written += static_cast<std::uint64_t>(n);
    if (session.header != nullptr && file.bytes != 0) {
      session.header->kernel_begin.wchar += static_cast<std::uint64_t>(n);  // it is not the program's
    }
  }
  return true;
}

// Maps pages, ready for writes, before the program waits for each of them. Kernels before 5.14 cannot be
// asked to; where files lie in memory they map a stretch of those that are there at the first look at one.
void touch(char* at, std::uint64_t bytes) noexcept {
#ifdef MADV_POPULATE_WRITE
  if (system_call(SYS_madvise, word(at), static_cast<long>(bytes), MADV_POPULATE_WRITE) == 0) {
    return;
  }
#endif
  constexpr std::uint64_t kStretch = 65536;  // fault_around_bytes
  for (std::uint64_t i = 0; file.in_memory && i < bytes; i += kStretch) {
    static_cast<void>(*static_cast<const volatile char*>(at + i));
  }
}

// Makes the file so long, with its place on the device, and maps what is new. Raw calls, for mmap itself is
// wrapped.
bool grow_to(std::uint64_t bytes, int flags) noexcept {
  // A file that grows beyond what the program may write would end it by SIGXFSZ.
  rlimit most{};
  if (bytes > file.reserved || bytes > file.limit ||
      (system_call(SYS_prlimit64, 0, RLIMIT_FSIZE, 0, word(&most)) == 0 && bytes > most.rlim_cur)) {
    return false;
  }
  const long fd = open_own(flags);
  if (fd < 0) {
    failure = static_cast<int>(-fd);
    return false;
  }
  if ((flags & O_CREAT) != 0) {
    constexpr decltype(statfs::f_type) kTmpfs = 0x01021994;
    struct statfs about {};
    file.in_memory = system_call(SYS_fstatfs, fd, word(&about)) == 0 && about.f_type == kTmpfs;
  }
  const std::uint64_t growth = bytes - file.bytes;
  char* fresh = session.base + file.bytes;
  bool grown = write_zeros(fd, file.bytes, growth);
  if (grown) {
    const long at = system_call(SYS_mmap, word(fresh), static_cast<long>(growth), PROT_READ | PROT_WRITE,
                                MAP_SHARED | MAP_FIXED, fd, static_cast<long>(file.bytes));
    grown = at > 0 || at < -4095;
  }
  if (grown) {
    touch(fresh, growth);
    file.bytes = bytes;
  } else {
    system_call(SYS_ftruncate, fd, static_cast<long>(file.bytes));  // what there was room for is not kept
  }
  system_call(SYS_close, fd);
  return grown;
}

std::uint32_t from_environment(const char* a, const char* b) noexcept {
  for (const char* name : {a, b}) {
    if (const char* value = getenv(name); value != nullptr && *value != 0) {
      return static_cast<std::uint32_t>(strtoul(value, nullptr, 10));
    }
  }
  return 0;
}

void fill_header(bool forked) noexcept {
  penstock_session_header& h = *session.header;
  h.version = PENSTOCK_SESSION_VERSION;
  h.byte_order = PENSTOCK_SESSION_BYTE_ORDER;
  h.header_bytes = PENSTOCK_HEADER_BYTES;
  h.granule = PENSTOCK_BLOCK_GRANULE;
  h.pid = static_cast<std::uint32_t>(system_call(SYS_getpid));
  h.parent_pid = static_cast<std::uint32_t>(system_call(SYS_getppid));
  h.clock = use_tsc ? PENSTOCK_CLOCK_TSC : PENSTOCK_CLOCK_MONOTONIC;
  h.forked = forked ? 1 : 0;
  h.process_start = process_start();
  h.begin_realtime_ns = nanoseconds(CLOCK_REALTIME);
  h.begin = penstock_moment{.ticks = ticks(), .monotonic_ns = nanoseconds(CLOCK_MONOTONIC)};
  h.later[0] = h.later[1] = h.begin;
  h.ticks_per_s = file.ticks_per_s;
  h.file_end = PENSTOCK_HEADER_BYTES;
  h.rank = from_environment("OMPI_COMM_WORLD_RANK", "PMI_RANK");
  h.ranks = from_environment("OMPI_COMM_WORLD_SIZE", "PMI_SIZE");
  gethostname(h.host, sizeof(h.host) - 1);
  system_call(SYS_readlinkat, AT_FDCWD, word("/proc/self/exe"), word(h.executable), sizeof(h.executable) - 1);
  system_call(SYS_getcwd, word(h.directory), sizeof(h.directory));
  h.command_bytes = static_cast<std::uint32_t>(read_text("/proc/self/cmdline", h.command, sizeof(h.command)));
  // What the kernel has counted so far is nobody's but ours; a forked process's counters began with it.
  file.own_read = forked ? file.own_read : 0;
  if (!forked && read_kernel_io(h.kernel_begin)) {
    h.kernel_begin.syscr += 2;
  }
  h.kernel_begin.rchar += file.own_read;
  h.kernel_begin.wchar += forked ? file.own_written : 0;
  h.control = wants_segments() ? 1 : 0;
  memcpy(h.magic, PENSTOCK_SESSION_MAGIC, sizeof(h.magic));  // last: from now on it is one
}

// The state is the caller's to set.
bool begin_file(bool forked) noexcept {
  file.bytes = 0;
  file.own_read = 0;
  file.own_written = 0;
  file.read_to_begin = 0;
  file.events = nullptr;
  char* const before = session.base;
  const char* limit = getenv("PENSTOCK_PROFILE_LIMIT");
  file.limit = limit != nullptr ? strtoull(limit, nullptr, 10) : ~std::uint64_t{0};
  if (!reserve()) {
    return false;
  }
  snprintf(file.path, sizeof(file.path), "%s/%ld-%lld" PENSTOCK_SESSION_SUFFIX, session.folder,
           system_call(SYS_getpid), static_cast<long long>(nanoseconds(CLOCK_MONOTONIC)));
  failure = 0;
  if (!grow_to(kFirstBytes, O_CREAT | O_EXCL)) {
    system_call(SYS_unlinkat, AT_FDCWD, word(file.path), 0);
    system_call(SYS_munmap, word(session.base), static_cast<long>(file.reserved));
    session.base = before;
    return false;
  }
  session.header = reinterpret_cast<penstock_session_header*>(session.base);
  fill_header(forked);
  return true;
}

// Who comes later grows the file again. The lock is held.
void give_back_spare_room() noexcept {
  const std::uint64_t end = session.header->file_end;
  const long fd = end < file.bytes ? open_own(0) : -1;
  if (fd >= 0) {
    if (system_call(SYS_ftruncate, fd, static_cast<long>(end)) == 0) {
      file.bytes = end;
    }
    system_call(SYS_close, fd);
  }
}

std::uint64_t whole_granules(std::uint64_t bytes) noexcept {
  return (bytes + PENSTOCK_BLOCK_GRANULE - 1) / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
}

}  // namespace

bool wants_segments() noexcept {
  const char* trace = getenv("PENSTOCK_PROFILE_TRACE");
  return trace != nullptr && *trace == '1';
}

int session_failure() noexcept {
  return failure != 0 ? failure : ENOSPC;
}

void open_session() noexcept {
  const char* folder = getenv("PENSTOCK_PROFILE_SESSION");
  if (folder == nullptr || *folder != '/' || strlen(folder) >= sizeof(session.folder)) {
    return;
  }
  copy_text(session.folder, sizeof(session.folder), folder);
  file.ticks_per_s = start_ticks();
  if (begin_file(false)) {
    session.state.store(SessionState::running, std::memory_order_release);
    return;
  }
  char said[1280];
  const int length =
      snprintf(said, sizeof(said), "penstock: nothing is profiled: no file can be written to '%s'\n", folder);
  system_call(SYS_write, STDERR_FILENO, word(said), length);
}

bool begin_session(const char* folder, penstock_begun begun, bool segments,
                   const penstock_kernel_io* before) noexcept {
  if (file.ticks_per_s == 0) {
    file.ticks_per_s = start_ticks();
  }
  const Hold hold(file_lock);
  copy_text(session.folder, sizeof(session.folder), folder);
  if (!hold.held() || !begin_file(false)) {
    return false;
  }
  session.header->begun = begun;
  if (before != nullptr) {
    session.header->kernel_begin = *before;
    session.header->kernel_begin.rchar += file.read_to_begin;
    session.header->kernel_begin.wchar += file.own_written;
  }
  session.header->control = segments ? 1 : 0;
  session.state.store(SessionState::running, std::memory_order_release);
  return true;
}

namespace {

// Files that are done, and mapped for late calls.
struct Past {
  char* base;
  std::uint64_t bytes;
};
constexpr std::size_t kMostPast = 4096;
Past past[kMostPast];
std::size_t past_count = 0;

}  // namespace

void stop_session() noexcept {
  end_session(PENSTOCK_STOPPED);
  const Hold hold(file_lock);
  // Of what was mapped and given back again nothing can be touched: blocks end before it.
  system_call(SYS_munmap, word(session.base + file.bytes), static_cast<long>(file.reserved - file.bytes));
  if (past_count < kMostPast) {
    past[past_count++] = {.base = session.base, .bytes = file.bytes};
  }
}

void reclaim_sessions(bool (*is_needed)(const char* base)) noexcept {
  // The youngest few are left: a call may hold a pointer into one for as long as closing a file takes.
  constexpr std::size_t kYoung = 8;
  std::size_t left = 0;
  for (std::size_t i = 0; i < past_count; ++i) {
    if (i + kYoung >= past_count || past[i].base == session.base || is_needed(past[i].base)) {
      past[left++] = past[i];
    } else {
      system_call(SYS_munmap, word(past[i].base), static_cast<long>(past[i].bytes));
    }
  }
  past_count = left;
}

void leave_parents_session() noexcept {
  file_lock.reset();
  session.state.store(SessionState::forked, std::memory_order_relaxed);
}

bool begin_forked(void (*take_along)(const char* parents_base)) noexcept {
  char* parents = session.base;
  const std::uint64_t parents_bytes = file.reserved;
  const bool begun = begin_file(true);
  if (begun) {
    take_along(parents);
  }
  system_call(SYS_munmap, word(parents), static_cast<long>(parents_bytes));
  session.state.store(begun ? SessionState::running : SessionState::off, std::memory_order_release);
  return begun;
}

namespace {

// Who was cloned past all wrappers has its parent's memory, but not its file.
bool is_own_session() noexcept {
  return session.header->pid == static_cast<std::uint32_t>(system_call(SYS_getpid));
}

// The lock is held.
penstock_block* add_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept {
  if (!is_own_session()) {
    return nullptr;
  }
  const std::uint64_t whole = whole_granules(bytes + sizeof(penstock_block));
  const std::uint64_t at = session.header->file_end;
  if (at + whole > file.bytes) {
    std::uint64_t growth = file.bytes / 4;
    growth = growth > kUsualGrowth ? kUsualGrowth : growth;
    growth = growth < file.bytes / 64 ? file.bytes / 64 : growth;
    growth = whole_granules(growth > kMostGrowth ? kMostGrowth : growth);
    growth = growth < whole ? whole : growth;
    if (!grow_to(file.bytes + growth, 0) && !grow_to(at + whole, 0)) {
      return nullptr;
    }
  }
  auto* block = at_offset<penstock_block>(at);
  block->bytes = whole;
  block->used = 0;
  block->entry_bytes = entry_bytes;
  block->kind = static_cast<std::uint16_t>(kind);
  __atomic_store_n(&block->magic, PENSTOCK_BLOCK_MAGIC, __ATOMIC_RELEASE);
  __atomic_store_n(&session.header->file_end, at + whole, __ATOMIC_RELEASE);
  return block;
}

}  // namespace

penstock_block* new_block(penstock_block_kind kind, std::uint16_t entry_bytes, std::uint64_t bytes) noexcept {
  const Hold hold(file_lock);
  return hold.held() ? add_block(kind, entry_bytes, bytes) : nullptr;
}

namespace {

// The lock is held.
void set_moment() noexcept {
  penstock_session_header& h = *session.header;
  const std::uint32_t next = 1 - (__atomic_load_n(&h.later_index, __ATOMIC_ACQUIRE) & 1U);
  h.later[next] = penstock_moment{.ticks = ticks(), .monotonic_ns = nanoseconds(CLOCK_MONOTONIC)};
  __atomic_store_n(&h.later_index, next, __ATOMIC_RELEASE);
}

}  // namespace

void note_moment(std::uint64_t now) noexcept {
  const penstock_session_header& h = *session.header;
  const std::uint32_t newest = __atomic_load_n(&h.later_index, __ATOMIC_ACQUIRE) & 1U;
  if (now - h.later[newest].ticks < h.ticks_per_s / 8) {
    return;
  }
  const Hold hold(file_lock);
  if (hold.held()) {
    set_moment();
  }
}

void end_session(penstock_process_state state) noexcept {
  if (session.state.load(std::memory_order_acquire) != SessionState::running || !is_own_session()) {
    return;
  }
  penstock_session_header& h = *session.header;
  const Hold hold(file_lock);
  if (hold.held()) {
    set_moment();
  }
  penstock_kernel_io io{};
  if (read_kernel_io(io)) {
    h.kernel_end = io;
    __atomic_store_n(&h.kernel_end_known, 1U, __ATOMIC_RELEASE);
  }
  h.end_monotonic_ns = nanoseconds(CLOCK_MONOTONIC);
  __atomic_store_n(&h.state, static_cast<std::uint32_t>(state), __ATOMIC_RELEASE);
  if (hold.held()) {
    give_back_spare_room();
  }
}

void resume_session() noexcept {
  if (session.state.load(std::memory_order_acquire) == SessionState::running) {
    session.header->end_monotonic_ns = 0;
    __atomic_store_n(&session.header->kernel_end_known, 0U, __ATOMIC_RELEASE);
    __atomic_store_n(&session.header->state, std::uint32_t{PENSTOCK_RUNNING}, __ATOMIC_RELEASE);
  }
}

void add_event(penstock_event_kind kind, std::uint32_t pid, const char* text) noexcept {
  if (session.state.load(std::memory_order_acquire) != SessionState::running) {
    return;
  }
  const Hold hold(file_lock);
  const std::size_t length = text == nullptr ? 0 : strnlen(text, 4096);
  const std::uint64_t bytes = sizeof(penstock_event) + (length + 7) / 8 * 8;
  if (hold.held() &&
      (file.events == nullptr || sizeof(penstock_block) + file.events->used + bytes > file.events->bytes)) {
    if (penstock_block* fresh = add_block(PENSTOCK_BLOCK_EVENTS, 0, bytes); fresh != nullptr) {
      file.events = fresh;
    }
  }
  penstock_block* block = hold.held() ? file.events : nullptr;
  if (block == nullptr || sizeof(penstock_block) + block->used + bytes > block->bytes) {
    count_drop(session.header->dropped_operations);
    return;
  }
  char* at = reinterpret_cast<char*>(block) + sizeof(penstock_block) + block->used;
  const penstock_event event{.ticks = ticks(),
                             .pid = pid,
                             .kind = static_cast<std::uint16_t>(kind),
                             .length = static_cast<std::uint16_t>(length)};
  memcpy(at, &event, sizeof(event));
  if (length != 0) {
    memcpy(at + sizeof(event), text, length);
  }
  __atomic_store_n(&block->used, block->used + bytes, __ATOMIC_RELEASE);
}

}  // namespace penstock::interpose
