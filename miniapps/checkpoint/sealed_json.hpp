// Sealed JSON: a JSON text and, on one more line, the CRC32C of that text. A reader uses the CRC32C to find
// text that was cut short or changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/json.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr uint64_t kSealedFormat = 1;            // version of the format, for all kinds of sealed JSON
inline constexpr size_t kMostSealedBytes = 256U << 20;  // largest text; far more than any checkpoint needs

// Returns the sealed text of the object `json`. Its first members are `kind` and the format's version.
std::string seal_json(std::string_view kind, const Json& json);

// Checks the text and returns its JSON object. corrupt: the CRC is missing or wrong, or the text is not a
// JSON object of this kind. unsupported: another version of the format. `object` is the name of the text, for
// error messages.
Result<Json> unseal_json(std::string_view kind, std::string_view text, std::string_view object);

// Returns a member that must exist and must be an unsigned integer; else throws std::exception.
uint64_t count_at(const Json& json, const char* key);

}  // namespace penstock
