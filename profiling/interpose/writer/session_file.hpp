// The current file of the session: how it grows, and its blocks. Used by the .cpp files that implement
// session.hpp and session_lifetime.hpp.
//
// Locks: the caller holds file_lock, or is the only thread that records (in the library's constructor or in a
// fork's child). Only is_own_session() needs no lock: end_session() calls it before it takes file_lock. Under
// file_lock no other lock is taken, malloc is not called, and the holder waits only for the file's own
// device. LockGuard::has_lock() is false in a handler that interrupted its own thread under the lock.
#pragma once

#include <sys/types.h>

#include "profiling/interpose/writer/owned_lock.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// A descriptor that this library keeps open. Programs close descriptors that they find, so its number may
// belong to another file by now: get() compares device and inode.
class KeptDescriptor {
 public:
  // Keeps `fd` under a higher number, which programs seldom use, and closes `fd`.
  void keep(long fd) noexcept;
  long get() const noexcept;  // -1 if there is none
  void close() noexcept;      // a forked child closes that of its parent

 private:
  long fd_ = -1;
  dev_t device_ = 0;
  ino_t inode_ = 0;
};

struct File {
  char path[1152] = {};
  uint64_t reserved_bytes = 0;
  uint64_t bytes = 0;       // size of the file; all of it is mapped
  uint64_t size_limit = 0;  // largest size that the file may have
  uint64_t ticks_per_s = 0;
  dev_t device = 0;
  ino_t inode = 0;
  uint64_t own_read_bytes = 0;     // bytes that this library has read; the kernel counts them in rchar
  uint64_t own_written_bytes = 0;  // bytes that this library has written; the kernel counts them in wchar
  uint64_t begin_read_bytes = 0;   // bytes that this library has read since begin_file() began this file
  uint64_t unflushed_bytes = 0;    // bytes in streams that libc writes at exit, after the session has ended
  bool is_in_memory = false;       // the file is on tmpfs
  penstock_block* event_block = nullptr;
  uint64_t segment_bytes = 0;  // size of all blocks of segments together
  // A list of all full blocks of segments, in the order in which they became full. These are the offsets of
  // the first and of the last block of the list; 0: the list is empty. penstock_block.next is the offset of
  // the next block. No thread writes to full blocks.
  uint64_t oldest_full_block = 0;
  uint64_t newest_full_block = 0;
  // Open only after keep_access(). Otherwise the files are opened by their names.
  KeptDescriptor kept_file;
  KeptDescriptor kept_kernel_io;  // /proc/self/io
};
extern constinit File file;
extern constinit OwnedLock file_lock;
extern constinit int file_errno;  // errno of the last failure to start a file or to let it grow

constexpr uint64_t kInitialFileBytes = 8 * uint64_t{PENSTOCK_BLOCK_GRANULE};
constexpr uint64_t kLeastReservedBytes = 4U << 20U;  // addresses, without which no file is made

// Returns the number of bytes that the environment variable `name` has as its value, or `default_bytes` if it
// has no number as its value.
uint64_t bytes_from_environment(const char* name, uint64_t default_bytes) noexcept;
// Returns the value of PENSTOCK_PROFILE_TRACE_LIMIT, or the default if that is not a number. 0 means no
// limit.
uint64_t trace_limit_from_environment() noexcept;
// Reserves addresses for the file, and stores them in session.base and File::reserved_bytes.
bool reserve_addresses() noexcept;
// Grows the file to `bytes` bytes: allocates the space on the device, and then maps the new part. `flags` are
// added to those of open(). If it fails, it returns false and sets `file_errno`.
bool grow_to(uint64_t bytes, int flags) noexcept;
// Cuts off the unused end of the file. A later block lets the file grow again.
void trim_file() noexcept;

inline uint64_t round_up_to_granules(uint64_t bytes) noexcept {
  return (bytes + PENSTOCK_BLOCK_GRANULE - 1) / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
}

// Stores the present time in the header: the session's ticks and CLOCK_MONOTONIC.
void set_moment() noexcept;

// Whether this process made the file. False in a child that was forked by a call without a wrapper; it must
// not write to its parent's file.
bool is_own_session() noexcept;
// Adds a block to the file and writes its header; null if there is no room.
penstock_block* add_block(penstock_block_kind kind, uint16_t entry_bytes, uint64_t bytes) noexcept;

}  // namespace penstock::interpose
