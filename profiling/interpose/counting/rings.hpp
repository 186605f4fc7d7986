// Counts operations that a program makes by io_uring.
//
// A program writes requests into one ring and takes completions from another. It shares the memory of both
// with the kernel and makes a call only to let the kernel process them. So this library reads both rings
// around each such call: requests before it, completions before and after it. It reads them once more when
// the ring or the process ends. A completion stays in memory until the ring is full and newer ones overwrite
// it. Completions that were overwritten unread, and those whose requests were not seen, count as dropped
// operations.
//
// A request may succeed without a completion (IOSQE_CQE_SKIP_SUCCESS). The completion of a later request in
// its chain shows that it did.
//
// Threads: wrappers call these functions in any thread of the program.
// Locks: none of this library's locks is held on entry. Each function takes the lock of its ring.
// add_library_ring() and add_program_ring() take the lock of the list, and that of an older ring with the
// same descriptor. has_rings() takes none. forget_rings() (asynchronous.hpp) resets the locks without taking
// them.
// Memory: from the kernel, not from the program's heap. errno does not change.
// Signals: a handler may call them. If its own thread is inside one of them, it cannot take the ring's lock:
// the handler's call is made, and its requests are missed. In such a handler remove_ring() does nothing: the
// ring stays in the list, with pointers to memory that liburing then unmaps.
// Forks: a child forgets its parent's rings (forget_rings()).
#pragma once

#include <cstddef>

#include "profiling/interpose/counting/ring_layout.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// Adds a ring to the list of rings whose requests are counted. Called after liburing has set it up.
void add_library_ring(const LibraryRing& ring, const RingParameters& parameters) noexcept;
// Counts what is not counted yet in the ring, and forgets the ring. Called before liburing unmaps it.
void remove_ring(const LibraryRing& ring) noexcept;
// Does the same for the ring with descriptor `fd`, before that descriptor is closed. Does nothing if `fd` is
// not a ring.
void remove_ring(int fd) noexcept;
// Adds a ring that the program has set up by itself (io_uring_setup()). Its memory is known once the program
// maps it (note_ring_memory()).
void add_program_ring(int fd, const RingParameters& parameters) noexcept;

inline bool has_rings() noexcept {
  return session.rings_seen;
}

// Reads completions and then requests. Called before a call that submits requests or waits for completions.
void read_before_call(const LibraryRing& ring) noexcept;
// Reads only completions. Called after a call that submits requests or waits for completions.
void read_completions(const LibraryRing& ring) noexcept;
// Reads completions and then requests of a ring that the program fills by itself. Called before and after a
// call that submits requests or waits for completions. An `fd` of -1 means all rings.
void read_program_ring(int fd) noexcept;

// Notes the table of files that the program has registered for the ring, after the kernel has accepted it. A
// null `fds` means empty entries.
void set_registered_files(int fd, const int* fds, uint32_t count) noexcept;
// Notes `count` entries of the ring's table of registered files, from entry `first` on, after the kernel has
// replaced them.
void update_registered_files(int fd, uint32_t first, const int* fds, uint32_t count) noexcept;
// Called after io_uring_register(fd, operation, argument, count) has succeeded: notes changes of the ring's
// table of registered files.
void note_ring_registration(int fd, unsigned operation, const void* argument, unsigned count) noexcept;

// Notes where a ring's memory is. Called after mmap(). Returns whether `fd` is a ring.
bool note_ring_memory(int fd, int64_t offset, void* memory) noexcept;
// Ends the rings whose memory is in the `bytes` bytes from `memory` on. Called before munmap().
void remove_rings_in(const void* memory, size_t bytes) noexcept;

}  // namespace penstock::interpose
