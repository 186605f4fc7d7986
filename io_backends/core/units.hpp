// Sizes, durations, rates and lists as people write them, and back (the conventions of the command line).
#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// "512", "4k", "4KiB", "1m", "2GiB" are powers of 1024, in any case; "MB", "GB" (a letter and B) are powers
// of 1000. A fraction is allowed ("1.5GiB"); a negative, empty or too large number, or an unknown unit, is
// invalid_argument.
Result<std::uint64_t> parse_size(std::string_view text);

// "250us", "10ms", "1.5s", "2m", "1h"; a bare number is refused, because its unit would be a guess ("0" is
// allowed).
Result<std::chrono::nanoseconds> parse_duration(std::string_view text);

// A size per second: "150MB/s", "1GiB/s". The "/s" may be left out, the unit not.
Result<std::uint64_t> parse_rate(std::string_view text);

// A whole number; k, m and g multiply by powers of 1000 ("50k" samples).
Result<std::uint64_t> parse_count(std::string_view text);

// "0.5", "-2", "1e-3"; no infinity and no NaN.
Result<double> parse_real(std::string_view text);

// "1,2,4,8", "1..8" (every number), "1..64*2" (geometric), "0..100+10" (arithmetic), and mixtures
// "1,2,8..64*2".
Result<std::vector<std::uint64_t>> parse_list(std::string_view text);

// Human forms, two significant digits at least: "1.8 GiB", "112 KiB", "512 B".
std::string format_size(std::uint64_t bytes);
// Of any number of bytes that is finite; `si`: "1.8 GB".
std::string scaled_size(double bytes, bool si);
std::string format_duration(std::chrono::nanoseconds duration);
// 16384 -> "16 384" (thin groups as in the tables).
std::string format_count(std::uint64_t count);
// The same of a number as text, of the digits before its point: "-16384.5" -> "-16 384.5".
std::string grouped_digits(std::string_view number);

// The name in `names` that is nearest to `word` by edit distance, or "" if none is near enough to be meant.
std::string_view nearest_name(std::string_view word, const std::vector<std::string_view>& names);

}  // namespace penstock
