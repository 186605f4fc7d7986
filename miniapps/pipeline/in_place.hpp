// Decides whether samples are used in place (in the memory of the back end, without a copy), and how many
// objects stay open for that. Any thread may call the functions: they take no lock, allocate nothing and open
// nothing. `train` calls why_copied() before it makes the batches; the loader's constructor calls
// objects_to_hold().
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

// A pipeline maps at most this many objects that HeldObjects holds open, and at most this many more for
// samples in place. Linux allows a process 65,530 mappings, and the option keep=1 of the back end `mmap` may
// use half of them.
inline constexpr uint64_t kMostMappings = 12'288;

// The number of objects that the HeldObjects of a pipeline hold open. It is 0 if each object is one sample.
// Otherwise it is max_open_objects(), but at most kMostMappings if the back end maps objects.
uint64_t objects_to_hold(const Manifest& manifest, const Backend& backend);

// Says whether `samples` samples of a manifest can be in place at the same time: returns "" if they can,
// otherwise the reason why they must be copied. They can if all of this is true:
//  - The back end supports it, and no decorator (which counts operations or changes bytes) is around it.
//  - Each thread has only one read in flight (`depth` is 1).
//  - Either all objects can be held open, or each object is one sample and `samples` objects can be open and
//    mapped at the same time.
std::string_view why_copied(const Manifest& manifest, const Backend& backend, size_t depth, uint64_t samples);

}  // namespace penstock
