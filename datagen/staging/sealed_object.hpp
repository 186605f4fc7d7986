// A JSON object in one line that proves itself whole: it says what it is, of which format, and ends with a
// seal (results/record/record_file.hpp). For files that one process leaves for another.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "results/record/record.hpp"

namespace penstock {

inline constexpr std::size_t kMostSealedObject = std::size_t{1} << 30U;  // some ten million names

// With a line's end.
std::string sealed_object_text(std::string_view kind, std::uint64_t format, const Json& members);

// corrupt where it is cut, changed, of another kind or deeper than any of ours; unsupported where it is of
// another format. `where` is for messages.
Result<Json> parse_sealed_object(std::string_view kind, std::uint64_t format, std::string_view text,
                                 std::string_view where);

// Members that must be there and numbers; std::exception where they are not. (get() alone takes any number,
// and makes another one of it.)
std::uint64_t count_of(const Json& json, const char* key);
double number_of(const Json& json, const char* key);

}  // namespace penstock
