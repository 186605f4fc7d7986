// Writers for objects whose head is known only at their end.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// As Backend::create, and Writer::write_at works, whatever the back end: without Caps::write_at the object
// is in memory until it is published; `unsupported` once it has more than kMostHeldBytes.
Result<std::unique_ptr<Writer>> create_patchable(Backend& backend, std::string_view name,
                                                 std::uint64_t bytes_hint);

inline constexpr std::uint64_t kMostHeldBytes = std::uint64_t{256} << 20;

}  // namespace penstock
