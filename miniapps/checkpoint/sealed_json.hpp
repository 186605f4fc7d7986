// JSON text that can be checked for completeness: the line after it has the CRC32C of all text before that
// line.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr uint64_t kSealedFormat = 1;            // version that all kinds of sealed JSON have
inline constexpr size_t kMostSealedBytes = 256U << 20;  // largest text; far more than any checkpoint needs

// Adds `kind` and the format's version before the members of `json`, which is an object.
std::string seal_json(std::string_view kind, const nlohmann::ordered_json& json);

// Checks the text and returns its JSON object. corrupt: the CRC is missing or wrong, it is no JSON object, or
// it is of another kind. unsupported: another version. `object` is for messages.
Result<nlohmann::ordered_json> unseal_json(std::string_view kind, std::string_view text,
                                           std::string_view object);

// Returns a member that must exist and must be an unsigned integer; else throws std::exception.
uint64_t count_at(const nlohmann::ordered_json& json, const char* key);

}  // namespace penstock
