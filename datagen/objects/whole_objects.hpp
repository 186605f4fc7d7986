// Treats each object of a corpus as one sample. This is for programs that load whole files and then take the
// samples out of them.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct WholeObjects {
  Manifest manifest;  // sample i is the whole object i; without labels
  // The samples of the corpus that an object contains: neighbouring samples, from `first_sample` on.
  struct ObjectSamples {
    uint64_t first_sample = 0;
    uint32_t samples = 0;
  };
  std::vector<ObjectSamples> samples_of_object;  // entry i: of the object that is sample i of `manifest`

  // The largest and the smallest ObjectSamples::samples of any object; 0 if there is no object.
  uint32_t largest_sample_count() const;
  uint32_t smallest_sample_count() const;
};

// Makes one sample of each object that contains samples, in the manifest's order. Fails with `unsupported`,
// and names the object, if the samples of an object do not follow each other in the manifest.
Result<WholeObjects> whole_objects(const Manifest& manifest);

// Selects from `all` the objects with these indexes, in the order of `indexes`.
Result<WholeObjects> select_objects(const WholeObjects& all, std::span<const uint64_t> indexes);

}  // namespace penstock
