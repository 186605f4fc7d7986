// Copies that are too large for the caches to hold.
#pragma once

#include <cstddef>
#include <span>

namespace penstock {

// From here on what is copied is not found in a core's own cache any more by who reads it next.
inline constexpr std::size_t kStreamedCopy = std::size_t{4} << 20;

// As memcpy, of `from` whole into the begin of `to`, which is as long or longer; the two do not overlap. From
// kStreamedCopy on by stores that pass the caches (x86-64): a plain store first reads the line that it is
// about to overwrite, which is a third of all that goes between memory and core. Any thread; what was written
// is seen by others as after memcpy.
void copy_streamed(std::span<std::byte> to, std::span<const std::byte> from);

}  // namespace penstock
