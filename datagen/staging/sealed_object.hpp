// A JSON object in one line, for files that one process writes and another reads. It names its kind and
// format, and ends with a seal (results/record/record.hpp): a checksum that shows whether the line is
// complete.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

// The largest size of a sealed object in bytes; enough for about ten million names.
inline constexpr size_t kMostSealedBytes = size_t{1} << 30U;

// Makes a sealed object: one line of JSON that ends with its checksum, and a newline.
std::string sealed_object_text(std::string_view kind, uint64_t format, const Json& members);

// Parses a sealed object and verifies its checksum. Fails with `corrupt` if the text is truncated, changed,
// not of this kind or too deeply nested. Fails with `unsupported` if its format number is not `format`.
// `where` names the source of the text, for messages.
Result<Json> parse_sealed_object(std::string_view kind, uint64_t format, std::string_view text,
                                 std::string_view where);

// The value of the member `key`. It must be a non-negative whole number for count_member(), and any number
// for number_member(). Throws std::exception if the member is missing or has another type, which Json's get()
// would silently convert.
uint64_t count_member(const Json& json, const char* key);
double number_member(const Json& json, const char* key);

}  // namespace penstock
