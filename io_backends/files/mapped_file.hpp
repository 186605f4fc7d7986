// Files mapped into memory that can be read safely. If a mapped file has shrunk or its device fails, the
// system sends SIGBUS at the access. This module handles the signal, so that the process does not die.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>

#include "io_backends/core/result.hpp"

namespace penstock {

// A mapping of the first `bytes` bytes (at least 1) of a file. It exists as long as this object. Any thread
// may read it.
//
// If a byte is unavailable when it is read, the handler of SIGBUS replaces its page and all later bytes of
// the mapping by zeros. From then on lost() is true. So the caller must check lost() after it has used the
// bytes.
//
// The first mapping installs the handler. The handler passes any other SIGBUS to the earlier handler, or to
// the system, which ends the process. If the program installs a handler of its own later, that new handler
// must pass each SIGBUS that it does not handle to the handler of this module.
class MappedFile {
 public:
  MappedFile() = default;
  ~MappedFile();
  MappedFile(const MappedFile&) = delete;
  MappedFile& operator=(const MappedFile&) = delete;

  // Maps the file. It may be called only once. Returns 0 or the errno: ENODEV if files on this file system
  // cannot be mapped, ENOMEM if the process has too many mappings. `advice`: a MADV_ constant; an error of
  // madvise is ignored. `populate`: brings all bytes into memory before it returns.
  int map(int fd, size_t bytes, int advice = 0, bool populate = false);

  // The mapped bytes; empty before map().
  std::span<const std::byte> bytes() const { return bytes_; }
  bool lost() const { return lost_.load(std::memory_order_acquire); }

 private:
  friend struct Mappings;
  std::span<const std::byte> bytes_;
  std::atomic<bool> lost_{false};
};

}  // namespace penstock
