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
  std::vector<std::string> first_names;  // at most 10 names, in order of folder and name
};

// Skips hidden objects and the content of linked folders. Takes 8 bytes per object of the manifest. Compares
// names by a 64-bit hash, so it may miss one: for n extra objects the probability is n * objects / 2^64.
Result<ExtraObjects> find_extra_objects(Namespace& names, const Manifest& manifest, unsigned threads);

}  // namespace penstock
