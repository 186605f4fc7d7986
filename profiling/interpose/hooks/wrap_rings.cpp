// Wrappers of liburing. liburing makes its system calls inline, and much of it is inline in its header, so it
// is compiled into the program itself. Therefore this library reads the memory of the rings, before and after
// the calls of liburing's exported functions.
//
// Threads: each wrapper runs in the program's thread that makes the call.
// Locks: none of this library is held on entry. If another thread is reading the ring, the wrapper waits for
// the ring's own lock.
// Memory: a Ring and its tables are allocated, from the kernel. stdio and the locale are not used. liburing
// returns -errno and does not use errno; the functions of rings.hpp do not change it.
// Signals: liburing is not made for handlers, but a handler may use it nevertheless. If the handler
// interrupted its own thread while that thread held the ring's lock, the handler's call is made but not
// counted.
// Forks: if a child uses a ring of its parent, its calls are made but not counted (forget_rings()).
// Order: requests are read before the call, because the kernel may overwrite them during the call.
// Completions are read before the call, which may wait for room in the ring, and again after the call, which
// may have brought more. A ring is read for the last time before the call that unmaps its memory. Registered
// files are noted after the call, if the kernel has accepted them.
#include <signal.h>
#include <time.h>

#include "profiling/interpose/counting/rings.hpp"
#include "profiling/interpose/hooks/wrap.hpp"

using namespace penstock::interpose;  // NOLINT: wrappers are in no namespace, like libc's functions

namespace {

template <unsigned kCopy>
constinit FunctionOfCopy<int(unsigned, LibraryRing*, RingParameters*), kCopy> queue_init_params{
    "io_uring_queue_init_params"};

// Makes a call on a ring of liburing, and notes what is new in the ring: requests and completions before the
// call, and more completions after it.
int call_and_inspect(const LibraryRing& ring, auto call) noexcept {
  read_before_call(ring);
  const int result = call();
  read_completions(ring);
  return result;
}

// Makes a call on a ring that is given by its descriptor. Notes the new requests and completions in the ring
// before and after the call. If `flags` say that `fd` is an index, the ring is not known, so all rings are
// read.
int call_and_inspect(int fd, unsigned flags, auto call) noexcept {
  constexpr unsigned kRingIndexFlag = 1U << 4U;  // `fd` is an index of a registered ring, not a descriptor
  const int ring_fd = (flags & kRingIndexFlag) != 0 ? -1 : fd;
  read_program_ring(ring_fd);
  const int result = call();
  read_program_ring(ring_fd);
  return result;
}

// Remembers a new ring, if the call that made it succeeded (`result` is 0). Called after that call, but
// before the program gets the ring, so that no request is missed.
int note_started_ring(int result, const LibraryRing& ring, const RingParameters& parameters) noexcept {
  if (result == 0) {
    add_library_ring(ring, parameters);
  }
  return result;
}

// Remembers the `count` files that the program has registered in the ring, if the call that registered them
// succeeded. `files` can be read safely then, because the kernel has read it.
int note_registered_files(int result, const LibraryRing& ring, const int* files, unsigned count) noexcept {
  if (result >= 0) {
    set_registered_files(ring.fd, files, count);
  }
  return result;
}
// Remembers the files that replace `result` registered files of the ring, from number `first` on. Called
// after the call that replaced them. `files` can be read safely, because the kernel has read it.
int note_updated_files(int result, const LibraryRing& ring, unsigned first, const int* files) noexcept {
  if (result > 0) {
    update_registered_files(ring.fd, first, files, unsigned(result));
  }
  return result;
}

}  // namespace

PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_queue_init_params,
                         (unsigned entries, LibraryRing* ring, RingParameters* parameters)) {
  return note_started_ring(real_io_uring_queue_init_params<kCopy>(entries, ring, parameters), *ring,
                           *parameters);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_queue_init, (unsigned entries, LibraryRing* ring, unsigned flags)) {
  RingParameters parameters{};
  parameters.flags = flags;
  if (queue_init_params<kCopy>.pointer() == nullptr) {
    return real_io_uring_queue_init<kCopy>(entries, ring, flags);
  }
  return note_started_ring(queue_init_params<kCopy>(entries, ring, &parameters), *ring, parameters);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_queue_init_mem,
                         (unsigned entries, LibraryRing* ring, RingParameters* parameters, void* memory,
                          size_t bytes)) {
  const int result = real_io_uring_queue_init_mem<kCopy>(entries, ring, parameters, memory, bytes);
  return result < 0 ? result : (note_started_ring(0, *ring, *parameters), result);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_queue_mmap, (int fd, RingParameters* parameters, LibraryRing* ring)) {
  return note_started_ring(real_io_uring_queue_mmap<kCopy>(fd, parameters, ring), *ring, *parameters);
}
// remove_ring() must come before the call, because it reads the memory that the call unmaps.
PENSTOCK_WRAP_OF_LIBRARY(void, io_uring_queue_exit, (LibraryRing * ring)) {
  remove_ring(*ring);
  real_io_uring_queue_exit<kCopy>(ring);
}

PENSTOCK_WRAP_TWINS_OF_LIBRARY(int, io_uring_submit, io_uring_submit_and_get_events, (LibraryRing * ring),
                               call_and_inspect(*ring, [&] { return real(ring); }))
PENSTOCK_WRAP_TWINS_OF_LIBRARY(int, io_uring_get_events, __io_uring_sqring_wait, (LibraryRing * ring),
                               call_and_inspect(*ring, [&] { return real(ring); }))
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_submit_and_wait, (LibraryRing * ring, unsigned count)) {
  return call_and_inspect(*ring, [&] { return real_io_uring_submit_and_wait<kCopy>(ring, count); });
}
PENSTOCK_WRAP_TWINS_OF_LIBRARY(
    int, io_uring_submit_and_wait_timeout, io_uring_wait_cqes,
    (LibraryRing * ring, RingCompletion** completion, unsigned count, timespec* timeout, sigset_t* signals),
    call_and_inspect(*ring, [&] { return real(ring, completion, count, timeout, signals); }))
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_wait_cqe_timeout,
                         (LibraryRing * ring, RingCompletion** completion, timespec* timeout)) {
  return call_and_inspect(*ring,
                          [&] { return real_io_uring_wait_cqe_timeout<kCopy>(ring, completion, timeout); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, __io_uring_get_cqe,
                         (LibraryRing * ring, RingCompletion** completion, unsigned submit, unsigned count,
                          sigset_t* signals)) {
  return call_and_inspect(
      *ring, [&] { return real___io_uring_get_cqe<kCopy>(ring, completion, submit, count, signals); });
}
// io_uring_peek_batch_cqe() submits nothing, so only completions are read. They are read before the call,
// because the call may tell the kernel to put more completions into the ring. They are read again after it.
PENSTOCK_WRAP_OF_LIBRARY(unsigned, io_uring_peek_batch_cqe,
                         (LibraryRing * ring, RingCompletion** completions, unsigned count)) {
  read_completions(*ring);
  const unsigned completion_count = real_io_uring_peek_batch_cqe<kCopy>(ring, completions, count);
  read_completions(*ring);
  return completion_count;
}

PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_register_files,
                         (LibraryRing * ring, const int* files, unsigned count)) {
  return note_registered_files(real_io_uring_register_files<kCopy>(ring, files, count), *ring, files, count);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_register_files_tags,
                         (LibraryRing * ring, const int* files, const unsigned long long* tags,
                          unsigned count)) {
  return note_registered_files(real_io_uring_register_files_tags<kCopy>(ring, files, tags, count), *ring,
                               files, count);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_register_files_sparse, (LibraryRing * ring, unsigned count)) {
  return note_registered_files(real_io_uring_register_files_sparse<kCopy>(ring, count), *ring, nullptr,
                               count);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_register_files_update,
                         (LibraryRing * ring, unsigned first, const int* files, unsigned count)) {
  return note_updated_files(real_io_uring_register_files_update<kCopy>(ring, first, files, count), *ring,
                            first, files);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_register_files_update_tag,
                         (LibraryRing * ring, unsigned first, const int* files,
                          const unsigned long long* tags, unsigned count)) {
  return note_updated_files(real_io_uring_register_files_update_tag<kCopy>(ring, first, files, tags, count),
                            *ring, first, files);
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_unregister_files, (LibraryRing * ring)) {
  return note_registered_files(real_io_uring_unregister_files<kCopy>(ring), *ring, nullptr, 0);
}

// The following functions of liburing only make a system call. They are called by programs that fill their
// rings themselves.
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_setup, (unsigned entries, RingParameters* parameters)) {
  const int fd = real_io_uring_setup<kCopy>(entries, parameters);
  if (fd >= 0) {
    add_program_ring(fd, *parameters);
  }
  return fd;
}
// Requests are noted before the call, because the kernel takes them during the call. No lock is held during
// the call, which may block.
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_enter,
                         (unsigned fd, unsigned submit, unsigned count, unsigned flags, sigset_t* signals)) {
  return call_and_inspect(int(fd), flags,
                          [&] { return real_io_uring_enter<kCopy>(fd, submit, count, flags, signals); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_enter2,
                         (unsigned fd, unsigned submit, unsigned count, unsigned flags, sigset_t* signals,
                          size_t bytes)) {
  return call_and_inspect(
      int(fd), flags, [&] { return real_io_uring_enter2<kCopy>(fd, submit, count, flags, signals, bytes); });
}
PENSTOCK_WRAP_OF_LIBRARY(int, io_uring_register,
                         (unsigned fd, unsigned operation, const void* argument, unsigned count)) {
  const int result = real_io_uring_register<kCopy>(fd, operation, argument, count);
  if (result >= 0) {
    note_ring_registration(int(fd), operation, argument, count);
  }
  return result;
}
