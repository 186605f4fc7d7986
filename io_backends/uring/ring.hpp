// An io_uring with a table of files. Its first places are for chains of open, read and close, the others for
// opened objects.
#pragma once

#include <liburing.h>

#include <cstddef>

namespace penstock {

// One thread: with IORING_SETUP_SINGLE_ISSUER the kernel accepts submissions from no other.
class UringRing {
 public:
  UringRing() = default;
  UringRing(const UringRing&) = delete;
  UringRing& operator=(const UringRing&) = delete;
  ~UringRing() {
    if (there_) ::io_uring_queue_exit(&ring_);
  }

  // Slots for `depth` chains, each of three requests. 0, or the errno.
  int set_up(std::size_t depth, bool sqpoll);
  // Ends it with requests in flight, and waits up to 30 s until none of them writes to memory any more. It
  // can only wait on the thread that made it, and if a descriptor is free.
  void cut_off();
  io_uring& get() { return ring_; }
  unsigned known_files() const { return known_files_; }

 private:
  int create(unsigned entries, unsigned completions, unsigned flags);

  io_uring ring_{};
  bool there_ = false;
  unsigned chains_ = 0;       // slots of the table for them
  unsigned known_files_ = 0;  // the slots after them, for opened objects
};

}  // namespace penstock
