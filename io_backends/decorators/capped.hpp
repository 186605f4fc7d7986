// Limits the bytes that a back end holds, to test a full tier. Sets Caps::emulated.
#pragma once

#include <cstdint>
#include <memory>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// Wraps a back end so that all objects below its root, including unpublished ones, have at most
// `capacity_bytes` together. A write beyond that fails with no_space. Existing objects count, too: their
// sizes are added up at the first create(), remove() or free_bytes(). Later changes that do not go through
// this back end are not counted.
std::unique_ptr<Backend> capped(std::unique_ptr<Backend> inner, uint64_t capacity_bytes);

}  // namespace penstock
