// Formats a count with singular and plural: "1 file", "3 files".
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {

// Adds an "s" for the plural: "1 object", "2000 objects". With an `output`, see format_count().
inline std::string count_of(uint64_t count, std::string_view singular, const Output& output = {}) {
  return format_count(count, output).append(" ").append(singular).append(count == 1 ? "" : "s");
}
// Uses the given plural: "1 process", "2 processes".
inline std::string count_of(uint64_t count, std::string_view singular, std::string_view plural,
                            const Output& output = {}) {
  return format_count(count, output).append(" ").append(count == 1 ? singular : plural);
}

}  // namespace penstock
