// A back end that holds at most that many bytes: to try what a full tier does. Says Caps::emulated.
#pragma once

#include <cstdint>
#include <memory>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// The objects below the root, with those in the making, have at most `capacity_bytes` together; what would go
// beyond fails with no_space. What is there already counts: it is added up when first needed. Changes that
// others make behind this back end are not seen.
std::unique_ptr<Backend> capped(std::unique_ptr<Backend> inner, std::uint64_t capacity_bytes);

}  // namespace penstock
