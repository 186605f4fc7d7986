// Objects that are in a corpus's folder and that its manifest does not know.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct ExtraObjects {
  std::uint64_t count = 0;
  std::vector<std::string> first;  // names, at most 10, in order of folder and name
};

// Hidden objects and what lies behind links to folders are not looked at. Takes 8 bytes an object of the
// manifest, and compares names by a 64-bit hash: of n extra objects one escapes notice with a chance of n *
// objects / 2^64.
Result<ExtraObjects> find_extra_objects(Namespace& names, const Manifest& manifest, unsigned threads);

}  // namespace penstock
