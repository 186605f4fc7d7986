// Writes one object.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "io_backends/core/result.hpp"

namespace penstock {

// What survives after a successful call. On tiers in memory (Caps::volatile_memory, tmpfs) every level
// succeeds, and nothing survives a power cut.
enum class Durability : std::uint8_t {
  visible,        // readers see the whole object; it survives this process, not a power cut
  leaving,        // as visible, and the write to the device has started, so that a later sync waits less
  file,           // the bytes survive a power cut, the name perhaps not
  file_and_name,  // the name survives, too: every folder entry from the root to it is synced
};

constexpr bool syncs(Durability wanted) {
  return wanted >= Durability::file;
}

enum class IfExists : std::uint8_t { fail, replace };

// Writes one object. The object is invisible before publish(). Destroying an unpublished Writer removes its
// bytes. One thread.
class Writer {
 public:
  virtual ~Writer() = default;

  virtual Result<void> append(std::span<const std::byte> bytes) = 0;

  // As append() of all pieces in order, with one system call if the back end can.
  virtual Result<void> append(std::span<const std::span<const std::byte>> pieces);

  // Caps::write_at: writes at an offset and lets the object grow if necessary. Does not move the append
  // position.
  virtual Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes);

  // Gives the complete object its name in one step, and returns when `wanted` holds. `already_exists` if
  // IfExists::fail and the name exists. After any failure the Writer cannot be used, and the object does not
  // exist or is the old one. One exception: if only the sync of the name failed, the complete new object may
  // exist.
  virtual Result<void> publish(Durability wanted, IfExists if_exists = IfExists::replace) = 0;
};

// The error of a call to a Writer that has failed or published.
Error spent_error(std::string_view name);

}  // namespace penstock
