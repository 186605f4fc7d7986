// JSON that proves itself whole: after it, on a line of its own, the CRC32C of all that stands before.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr std::uint64_t kSealedFormat = 1;            // of all kinds together
inline constexpr std::size_t kMostSealedBytes = 256U << 20;  // far above what any checkpoint takes

// `kind` and the format's version are put in front of what `json`, an object, holds.
std::string seal_json(std::string_view kind, const nlohmann::ordered_json& json);

// What was sealed. corrupt where the CRC is missing or wrong, where it is no JSON object, or of another kind;
// unsupported where the version is another. `object` is for messages.
Result<nlohmann::ordered_json> unseal_json(std::string_view kind, std::string_view text,
                                           std::string_view object);

// A member that must be there and a number to count with; throws std::exception where it is not.
std::uint64_t count_at(const nlohmann::ordered_json& json, const char* key);

}  // namespace penstock
