// An io_uring with a table of files. Requests use the slots of the table instead of descriptors. The first
// slots are for chains of requests that open, read and close an object. The other slots are for objects that
// are already open.
#pragma once

#include <liburing.h>

#include <cstddef>
#include <string>

#include "io_backends/core/result.hpp"

namespace penstock {

// What the user can do if a ring cannot be set up for want of locked memory, for the end of a message; "" if
// that is not the reason.
std::string ring_memory_remedy(int sys_errno);
// The error of UringRing::set_up().
Error ring_error(int sys_errno, size_t depth);

// Only the thread that called set_up() may submit requests: with IORING_SETUP_SINGLE_ISSUER the kernel
// refuses those of other threads. Only one thread at a time may use a UringRing.
class UringRing {
 public:
  UringRing() = default;
  UringRing(const UringRing&) = delete;
  UringRing& operator=(const UringRing&) = delete;
  ~UringRing() {
    if (ready_) ::io_uring_queue_exit(&ring_);
  }

  // Makes a ring with slots for `depth` chains of three requests each. Returns 0 or the errno.
  int set_up(size_t depth, bool sqpoll);
  // Destroys the ring while requests are in flight. Waits up to 30 s until no request can write to memory.
  // But it waits only if the thread that made the ring calls it, and if two descriptors are free.
  void cut_off();
  io_uring& get() { return ring_; }
  unsigned table_files() const { return file_slots_; }

 private:
  int create(unsigned entries, unsigned completions, unsigned flags);

  io_uring ring_{};
  bool ready_ = false;
  unsigned chain_slots_ = 0;  // number of slots at the beginning of the table, for chains
  unsigned file_slots_ = 0;   // number of slots after them, for opened objects
};

}  // namespace penstock
