// Formats a count with singular and plural: "1 file", "3 files".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/units.hpp"

namespace penstock {

// "1 object", "2 000 objects".
inline std::string count_of(std::uint64_t count, std::string_view one) {
  return format_count(count).append(" ").append(one).append(count == 1 ? "" : "s");
}
// "1 process", "2 processes".
inline std::string count_of(std::uint64_t count, std::string_view one, std::string_view many) {
  return format_count(count).append(" ").append(count == 1 ? one : many);
}

}  // namespace penstock
