// Parses sizes, durations, rates and lists as people write them on the command line, and formats them.
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Parses a size. "512", "4k", "4KiB", "1m", "2GiB" use powers of 1024. "MB", "GB" (a letter and B) use powers
// of 1000. Letters may be upper or lower case. A fraction is allowed ("1.5GiB"). A negative, empty or too
// large number, or an unknown unit, is invalid_argument.
Result<uint64_t> parse_size(std::string_view text);

// Parses "250us", "10ms", "1.5s", "2m", "1h". A number without a unit is refused, because the unit would be a
// guess; only "0" is allowed.
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// Parses a size per second: "150MB/s", "1GiB/s". The "/s" may be omitted, but not the unit.
Result<uint64_t> parse_rate(std::string_view text);

// Parses a whole number. k, m and g multiply by powers of 1000 ("50k" samples).
Result<uint64_t> parse_count(std::string_view text);

// Parses "0.5", "-2", "1e-3". Infinity and NaN are refused.
Result<double> parse_real(std::string_view text);

// Parses "1,2,4,8", "1..8" (every number), "1..64*2" (geometric), "0..100+10" (arithmetic), and combinations:
// "1,2,8..64*2".
Result<std::vector<uint64_t>> parse_list(std::string_view text);

// Formats for people; from 1 KiB on, with at least two significant digits: "1.8 GiB", "112 KiB", "512 B".
std::string format_size(uint64_t bytes);
// Does the same as format_size(), for any finite number of bytes. With `si` it uses powers of 1000: "1.8 GB".
std::string scaled_size(double bytes, bool si);
std::string format_duration(std::chrono::nanoseconds duration);
// A count in a message or a log, where digits are not grouped, so that programs can read it. Tables have
// format_count(count, output).
inline std::string format_count(uint64_t count) {
  return std::to_string(count);
}

// The name in `names` that is nearest to `word` by edit distance; "" if no name is near enough.
std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& names);

}  // namespace penstock
