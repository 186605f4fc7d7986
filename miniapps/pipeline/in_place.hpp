// Whether samples are used where the back end has them, and which objects stay open for it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

// Linux allows a process 65,530 mappings. At most this number is for objects that are held open, and as many
// for samples that are used in place. A back end may keep half of all in addition (mmap's keep=1).
inline constexpr std::uint64_t kMostMapped = 12'288;

// How many objects the HeldObjects of a pipeline hold: none where each is a sample, else objects_held_open(),
// and kMostMapped at most where the back end maps them.
std::uint64_t objects_to_hold(const Manifest& manifest, const Backend& backend);

// Why `samples` samples of a manifest cannot be used in place at once; "" if they can. The back end must
// support it without a decorator, which counts operations and may change bytes. The depth must be 1. And
// either all objects are held open, or each object is one sample and no more of them are used at once than
// may be open and mapped.
std::string_view why_copied(const Manifest& manifest, const Backend& backend, std::size_t depth,
                            std::uint64_t samples);

}  // namespace penstock
