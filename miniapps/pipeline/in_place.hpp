// Decides whether samples are used in place, in the memory of the back end, and which objects stay open for
// that. Any thread may call the functions: they take no lock, allocate nothing and open nothing. `train` asks
// why_copied() before it makes the batches; the loader's constructor asks objects_to_hold().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

// Linux allows 65,530 mappings for a process. At most this many are for objects that are held open, and at
// most this many for samples in place. A back end may keep half of the 65,530 in addition (mmap's keep=1).
inline constexpr uint64_t kMostMappings = 12'288;

// The number of objects that the HeldObjects of a pipeline hold open. It is 0 if each object is one sample.
// Otherwise it is max_open_objects(), but at most kMostMappings if the back end maps objects.
uint64_t objects_to_hold(const Manifest& manifest, const Backend& backend);

// Why `samples` samples of a manifest cannot be in place at the same time; "" if they can. They can if the
// back end supports it, no decorator (which counts operations or changes bytes) is around the back end, and
// the depth is 1. In addition, either all objects must be held open, or each object is one sample and
// `samples` objects can be open and mapped at once.
std::string_view why_copied(const Manifest& manifest, const Backend& backend, size_t depth, uint64_t samples);

}  // namespace penstock
