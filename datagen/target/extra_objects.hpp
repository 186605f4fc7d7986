// Finds objects that are in a corpus's folder but not in its manifest.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct ExtraObjects {
  uint64_t count = 0;
  std::vector<std::string> first_names;  // the first names, at most 10, in order of folder and name
};

// Finds the objects below the root that are not in the manifest. Hidden objects and the content of linked
// folders are skipped. The search takes 8 bytes of memory per object of the manifest. It compares 64-bit
// hashes of names, so it may miss an extra object. If there are n extra objects, the probability of a miss is
// n * objects / 2^64.
Result<ExtraObjects> find_extra_objects(Namespace& names, const Manifest& manifest, unsigned threads);

}  // namespace penstock
