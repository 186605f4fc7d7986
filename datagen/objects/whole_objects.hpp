// The objects of a corpus as its samples: for programs that load whole files and take the samples out of
// them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct WholeObjects {
  Manifest manifest;  // sample i is all of object i; without labels
  // By sample of that: which samples of the corpus are in the object.
  struct Held {
    std::uint64_t first = 0;
    std::uint32_t samples = 0;
  };
  std::vector<Held> held;

  std::uint32_t most_held() const;  // by one object; 0 without objects, and
  std::uint32_t least_held() const;
};

// All objects of the corpus that hold samples, in the manifest's order. `unsupported`, naming the object,
// where the samples of one do not follow each other in the manifest.
Result<WholeObjects> whole_objects(const Manifest& manifest);

// Those of them in these places, in that order.
Result<WholeObjects> selected(const WholeObjects& all, std::span<const std::uint64_t> places);

}  // namespace penstock
