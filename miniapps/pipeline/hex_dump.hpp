// Parses hexadecimal dumps of program files. The malware in Kaggle's data set BIG 2015 has this form.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Parses a dump into its bytes, in order. A line has an address and then bytes of two hexadecimal digits,
// each after one space. "??" is an unknown byte, which becomes 0. Lines end with LF or CR LF. Writes the
// bytes to `octets`, which grows if needed and never shrinks, and returns their number. The error is
// `corrupt`, with the offset in the text, if a line does not have this form.
Result<size_t> parse_hex_dump(std::span<const std::byte> text, std::vector<uint8_t>& octets);

}  // namespace penstock
