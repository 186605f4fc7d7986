// The table of asynchronous operations, for the wrappers of POSIX aio and of the kernel's aio.
//
// Threads: any thread.
// Locks: none is held on entry, except Control (recording.hpp) when recording ends. begin() looks up the
// descriptor's file before it takes lock_, because the lookup may take the session's file_lock. end() counts
// after it has released lock_. Only count_ended() counts under lock_: it may wait in Update (counting.hpp),
// with lock_ held, while another thread changes the session. So the thread that changes the session must not
// wait for lock_ while session.is_changing is set.
// Memory: from the kernel, at the first operation.
// Signals: any handler may call these functions. If the handler's own thread holds lock_, has_lock() is
// false. In that case a new operation counts as dropped, and the end of an operation is not counted.
// Forks: a child frees the lock and empties the table (forget_all()).
#include "profiling/interpose/counting/blocks.hpp"

#include <sys/uio.h>

#include <new>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/writer/session.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {
constexpr uint32_t kMostPending = 65536;  // operations in flight at once

uint64_t key_of(const void* block) noexcept {
  return reinterpret_cast<uint64_t>(block);
}
}  // namespace

void AsyncOperations::begin(ThreadLog& log, const void* block, penstock_call call, int fd, int64_t offset,
                            int64_t length) noexcept {
  const HandleFile file = file_of(log, fd);
  const LockGuard lock(lock_);
  uint32_t index = 0;
  if (lock.has_lock()) {
    pending_.allocate(kMostPending);
    if (const uint32_t old_index = pending_.find(key_of(block)); old_index != 0) {
      pending_.remove(old_index);  // the old operation has ended, but the program never asked for its result
      count_drop(session.header->dropped_operations);
    }
    index = pending_.add(key_of(block));
  }
  if (index == 0) {
    count_drop(session.header->dropped_operations);
    return;
  }
  Pending& pending = pending_.at(index);
  pending.file = file;
  pending.fd = fd;
  pending.call = call;
  pending.offset = offset;
  pending.length = length;
  pending.begin = ticks();
}

bool AsyncOperations::find_and_remove(const void* block, Pending& removed) noexcept {
  const LockGuard lock(lock_);
  const uint32_t index = lock.has_lock() ? pending_.find(key_of(block)) : 0;
  if (index == 0) {
    return false;
  }
  removed = pending_.at(index);
  pending_.remove(index);
  return true;
}

void AsyncOperations::count_result(ThreadLog& log, const Pending& pending, int64_t result) noexcept {
  Operation operation{.call = pending.call,
                      .layer = layer_,
                      .failed = result < 0 ? int(-result) : 0,
                      .offset = pending.offset,
                      .begin = pending.begin,
                      .end = ticks()};
  if (result > 0 && (pending.call == PENSTOCK_CALL_READ || pending.call == PENSTOCK_CALL_WRITE)) {
    operation.length = result;
    const auto bytes = uint64_t(result);
    penstock_thread& totals = *log.totals;
    if (pending.call == PENSTOCK_CALL_READ) {
      (layer_ == PENSTOCK_POSIX ? totals.kernel_read : totals.ring_read) += bytes;
    } else {
      (layer_ == PENSTOCK_POSIX ? totals.kernel_written : totals.ring_written) += bytes;
    }
  }
  count_handle(log, pending.file, operation);
}

void AsyncOperations::end(ThreadLog& log, const void* block, int64_t result) noexcept {
  if (Pending pending; find_and_remove(block, pending)) {
    count_result(log, pending, result);
  }
}

void AsyncOperations::drop(const void* block) noexcept {
  Pending pending;
  find_and_remove(block, pending);
}

void AsyncOperations::count_ended(ThreadLog& log,
                                  bool (*has_ended)(const Pending& pending, int64_t& result)) noexcept {
  const LockGuard lock(lock_);
  if (!lock.has_lock()) {
    return;
  }
  for (uint32_t i = 1; i <= pending_.highest_index(); ++i) {
    if (!pending_.is_used(i)) {
      continue;
    }
    int64_t result = 0;
    if (has_ended(pending_.at(i), result)) {
      count_result(log, pending_.at(i), result);
    } else {
      count_drop(session.header->dropped_operations);
    }
    pending_.remove(i);
  }
}

void AsyncOperations::forget_all() noexcept {
  lock_.reset();
  pending_.free_memory();
}

bool copy_memory(const void* from, void* to, size_t bytes) noexcept {
  iovec target{.iov_base = to, .iov_len = bytes};
  iovec source{.iov_base = const_cast<void*>(from), .iov_len = bytes};
  return system_call(SYS_process_vm_readv, system_call(SYS_getpid), as_argument(&target), 1,
                     as_argument(&source), 1, 0) == long(bytes);
}

}  // namespace penstock::interpose
