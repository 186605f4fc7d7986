// A JSON object in one line for files that one process writes for another. It names its kind and format, and
// ends with a seal (results/record/record.hpp), a checksum that shows whether the line is complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

inline constexpr size_t kMostSealedBytes = size_t{1} << 30U;  // enough for about ten million names

// Makes the line, with a newline at its end.
std::string sealed_object_text(std::string_view kind, uint64_t format, const Json& members);

// `corrupt` if the line is cut, changed, of another kind or too deeply nested. `unsupported` if it has
// another format. `where` is for messages.
Result<Json> parse_sealed_object(std::string_view kind, uint64_t format, std::string_view text,
                                 std::string_view where);

// A member that must exist and be a number. Throws std::exception if it is not. (Json's get() would silently
// convert a number of another type.)
uint64_t count_member(const Json& json, const char* key);
double number_member(const Json& json, const char* key);

}  // namespace penstock
