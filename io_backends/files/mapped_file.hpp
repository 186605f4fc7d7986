// Files mapped into memory, whose bytes may be touched without the risk that the process dies for it: where
// the file has lost them meanwhile, or its device cannot read them, the system sends SIGBUS.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// The first `bytes` bytes (at least 1) of a file, for as long as this lives. Any thread.
//
// Touching a byte that is not available turns it, and all after it in the mapping, into zeros, and lost()
// into true, for good: whoever uses the bytes looks at lost() afterwards. From the first mapping on a handler
// of SIGBUS does that; signals that are none of its business it leaves to the handler that was there before,
// or to the system, which ends the process. Who installs one later keeps that promise by handing on what it
// does not know.
class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Once. 0, or the errno: ENODEV where the file system has no mappings, ENOMEM where there are too many.
  // `advice`: MADV_..., of which the outcome is not looked at. `populate` brings all bytes into memory at
  // once.
  int map(int fd, std::size_t bytes, int advice, bool populate);

  // Before map(): none.
  std::span<const std::byte> bytes() const { return bytes_; }
  bool lost() const { return lost_.load(std::memory_order_acquire); }

 private:
  friend struct Mappings;
  std::span<const std::byte> bytes_;
  std::atomic<bool> lost_{false};
};

}  // namespace penstock
