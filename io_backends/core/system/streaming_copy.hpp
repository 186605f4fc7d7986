// Copies large memory past the processor's caches.
#pragma once

#include <cstddef>
#include <span>

namespace penstock {

// From this size on a copy does not fit into a core's own cache. So storing it there does not help the next
// reader.
inline constexpr size_t kLeastStreamedBytes = size_t{4} << 20;

// Copies all of `from` to the beginning of `to`, as memcpy. `to` is at least as long, and the two do not
// overlap. From kLeastStreamedBytes on it uses stores that bypass the caches (x86-64). An ordinary store
// first reads the line that it overwrites: a third of all traffic between memory and core. Any thread. Other
// threads see the bytes as after memcpy.
void copy_streamed(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace penstock
