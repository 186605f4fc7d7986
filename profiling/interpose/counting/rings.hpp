// Counts operations that a program makes through io_uring.
//
// A program writes requests into one ring and takes completions from another. It shares the memory of both
// with the kernel and makes a call only to let the kernel process them. So this library reads the requests
// before each such call, and the completions before and after it. It reads both rings once more when they end
// or the process ends. A completion stays in memory until newer ones overwrite it. Completions that were
// overwritten before this library read them, and completions whose requests it has not seen, count as dropped
// operations.
//
// A request with IOSQE_CQE_SKIP_SUCCESS has no completion if it succeeds. This library knows that the request
// has succeeded when a later request of the same chain of linked requests has a completion.
//
// Threads: wrappers call these functions in any thread of the program.
// Locks: the caller holds none of this library's locks. Each function takes the lock of its ring.
// add_library_ring() and add_program_ring() take the lock of the list of rings, and the lock of an older ring
// with the same descriptor. has_rings() takes no lock. forget_rings() (asynchronous.hpp) resets the locks
// without taking them.
// Memory: from the kernel, not from the program's heap. errno does not change.
// Signals: a handler may call these functions. If it has interrupted one of them in its own thread, it cannot
// take the ring's lock. In that case the handler's io_uring call is still made, but its requests are not
// counted. A limit: in such a handler remove_ring() does nothing, so the ring stays in the list with pointers
// to memory that liburing then unmaps.
// Forks: a child forgets its parent's rings (forget_rings()).
#pragma once

#include <cstddef>

#include "profiling/interpose/counting/ring_layout.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// Adds a ring to the list of rings whose requests are counted. Called after liburing has set it up.
void add_library_ring(const LibraryRing& ring, const RingParameters& parameters) noexcept;
// Counts the ring's requests and completions that are not counted yet, and forgets the ring. Called before
// liburing unmaps it.
void remove_ring(const LibraryRing& ring) noexcept;
// Counts the requests and completions that are not counted yet in the ring with descriptor `fd`, and forgets
// the ring. Called before the descriptor is closed. Does nothing if `fd` is not a ring.
void remove_ring(int fd) noexcept;
// Adds a ring that the program has set up without liburing (io_uring_setup()). Unless the program provides
// the ring's memory itself, its address is known only when the program maps it (note_ring_memory()).
void add_program_ring(int fd, const RingParameters& parameters) noexcept;

inline bool has_rings() noexcept {
  return session.program_used_rings;
}

// Reads completions and then requests. Called before a call that submits requests or waits for completions.
void read_before_call(const LibraryRing& ring) noexcept;
// Reads only completions. Called after a call that submits requests or waits for completions.
void read_completions(const LibraryRing& ring) noexcept;
// Reads completions and then requests of a ring that the program uses without liburing. Called before and
// after a call that submits requests or waits for completions. An `fd` of -1 means all rings.
void read_program_ring(int fd) noexcept;

// Stores the table of files that the program has registered for the ring. Called after the kernel has
// accepted it. If `fds` is null, all entries are empty.
void set_registered_files(int fd, const int* fds, uint32_t count) noexcept;
// Stores `count` entries of the ring's table of registered files, from entry `first` on. Called after the
// kernel has replaced these entries.
void update_registered_files(int fd, uint32_t first, const int* fds, uint32_t count) noexcept;
// Called after io_uring_register(fd, operation, argument, count) has succeeded: stores its changes of the
// ring's table of registered files.
void note_ring_registration(int fd, unsigned operation, const void* argument, unsigned count) noexcept;

// Called after mmap(): stores the address of a ring's memory. Returns whether `fd` is a ring.
bool note_ring_memory(int fd, int64_t offset, void* memory) noexcept;
// Ends the rings whose memory is in the `bytes` bytes from `memory` on. Called before munmap().
void remove_rings_in(const void* memory, size_t bytes) noexcept;

}  // namespace penstock::interpose
