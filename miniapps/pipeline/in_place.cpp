#include "miniapps/pipeline/in_place.hpp"

#include <algorithm>

#include "datagen/sample/sample_list.hpp"

namespace penstock {
namespace {

uint64_t most_open_objects(uint64_t objects, const Backend& backend) {
  const uint64_t most_open = max_open_objects(objects);
  return backend.caps().zero_copy ? std::min(most_open, kMostMappings) : most_open;
}

}  // namespace

uint64_t objects_to_hold(const Manifest& manifest, const Backend& backend) {
  return manifest.one_object_per_sample() ? 0 : most_open_objects(manifest.objects(), backend);
}

std::string_view why_copied(const Manifest& manifest, const Backend& backend, size_t depth,
                            uint64_t samples) {
  const Caps& caps = backend.caps();
  if (!caps.zero_copy) return "its back end reads into memory";
  if (caps.emulated) return "the tier emulates limits or faults";
  if (depth != 1) return "--depth is above 1";
  const uint64_t objects = manifest.objects();
  if (!manifest.one_object_per_sample() && most_open_objects(objects, backend) == objects) return "";
  if (objects != manifest.samples())
    return "its objects have several samples each, and not all of them can be open at once";
  if (most_open_objects(samples, backend) != samples)
    return "all batches together need more samples than can be open and mapped at once";
  return "";
}

}  // namespace penstock
