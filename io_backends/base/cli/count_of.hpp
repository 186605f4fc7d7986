// How many of something, in words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/base/units.hpp"

namespace penstock {

// "1 object", "2 000 objects".
inline std::string count_of(std::uint64_t count, std::string_view one) {
  return format_count(count).append(" ").append(one).append(count == 1 ? "" : "s");
}

}  // namespace penstock
