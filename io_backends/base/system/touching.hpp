// Bytes that are used where they lie, brought there.
#pragma once

#include <cstddef>
#include <span>

namespace penstock {

// Looks at one byte of each page: what a mapping has not got yet is in memory then, as a device leaves it
// that writes there by itself. Any thread, both.
void touch_pages(std::span<const std::byte> bytes);

// Looks at one byte of each cache line: all of them have gone through this processor, as with a copy, and
// nothing was written.
void touch_lines(std::span<const std::byte> bytes);

}  // namespace penstock
