// What goes through io_uring. A program writes requests into one ring and takes completions from another,
// both in memory that it shares with the kernel, and needs calls only to have the kernel look. So both rings
// are looked at whenever such a call comes by: requests before it, completions before it and after it, at
// the ring's end and at the process's. A completion stays in its place until as many others have come as the
// ring has room for; those that were overwritten before anybody looked are dropped operations, as are those
// whose requests nobody saw.
//
// A request that succeeds without a completion (IOSQE_CQE_SKIP_SUCCESS) is known to have done so by the
// completion of one after it in its chain.
#pragma once

#include <cstddef>

#include "profiling/interpose/counting/ring_layout.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

// A ring that liburing has set up, or is about to take down.
void ring_begins(const LibraryRing& ring, const RingParameters& parameters) noexcept;
void ring_ends(const LibraryRing& ring) noexcept;
void ring_ends(int fd) noexcept;
// One that the program sets up by itself: its memory is known when it maps it.
void ring_set_up(int fd, const RingParameters& parameters) noexcept;

inline bool any_rings() noexcept {
  return session.rings_seen;
}

// Around a call that hands over requests or asks for completions. `fd` of -1: any ring of the program's own.
void look_before(const LibraryRing& ring) noexcept;
void look_behind(const LibraryRing& ring) noexcept;
void inspect(int fd) noexcept;

// The ring's own table of files. `fds` may be null: empty places.
void ring_files(int fd, const int* fds, std::uint32_t count) noexcept;
void ring_files_updated(int fd, std::uint32_t first, const int* fds, std::uint32_t count) noexcept;
void ring_registered(int fd, unsigned what, const void* argument, unsigned count) noexcept;

// Of mmap() and munmap(). Whether `fd` is a ring.
bool ring_mapped(int fd, std::int64_t offset, void* at) noexcept;
void ring_unmapped(const void* at, std::size_t bytes) noexcept;

}  // namespace penstock::interpose
