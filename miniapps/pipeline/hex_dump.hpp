// Programs as hexadecimal dumps, which is how Kaggle's BIG 2015 has its malware.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// The octets of a dump, in order. Its lines have an address, and after it octets of two digits each, "??"
// for an unknown one (a 0 here), divided by one space; they end with LF or CR LF. `octets` grows as
// needed and is not made smaller; the count comes back. corrupt, with the offset, where a line is nothing of
// that.
Result<std::size_t> parse_hex_dump(std::span<const std::byte> text, std::vector<std::uint8_t>& octets);

}  // namespace penstock
