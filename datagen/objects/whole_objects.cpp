#include "datagen/objects/whole_objects.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace penstock {
namespace {

// The facts of `from` without those that describe samples, because they do not apply to whole files.
ManifestFacts facts_of(const Manifest& from) {
  ManifestFacts facts = from.facts();
  facts.codec = "raw";
  facts.checksums = facts.object_checksums = false;
  facts.label_names.clear();
  return facts;
}

// Makes a manifest in which each of the given objects of `from` is one sample.
Result<WholeObjects> collect(const Manifest& from, std::span<const uint64_t> objects,
                             std::vector<WholeObjects::ObjectSamples> samples_of_object) {
  ManifestBuilder builder(facts_of(from));
  std::string scratch;
  for (const uint64_t object : objects) {
    const uint64_t bytes = from.object_bytes(object);
    builder.add_sample(
        {.length = bytes, .object = builder.add_object(from.object_name(object, scratch), bytes)});
  }
  PENSTOCK_ASSIGN(std::vector<std::byte> bytes, builder.finish());
  PENSTOCK_ASSIGN(Manifest manifest, Manifest::from_bytes(std::move(bytes)));
  return WholeObjects{std::move(manifest), std::move(samples_of_object)};
}

Error out_of_memory(const Manifest& manifest) {
  return {Errc::exhausted, 0, "no memory for a list of " + std::to_string(manifest.objects()) + " objects"};
}

bool has_fewer_samples(const WholeObjects::ObjectSamples& a, const WholeObjects::ObjectSamples& b) {
  return a.samples < b.samples;
}

}  // namespace

uint32_t WholeObjects::largest_sample_count() const {
  return samples_of_object.empty()
             ? 0
             : std::max_element(samples_of_object.begin(), samples_of_object.end(), has_fewer_samples)
                   ->samples;
}

uint32_t WholeObjects::smallest_sample_count() const {
  return samples_of_object.empty()
             ? 0
             : std::min_element(samples_of_object.begin(), samples_of_object.end(), has_fewer_samples)
                   ->samples;
}

Result<WholeObjects> whole_objects(const Manifest& manifest) {
  try {
    std::vector<uint64_t> objects;
    std::vector<WholeObjects::ObjectSamples> samples_of_objects;
    std::vector<bool> seen(size_t(manifest.objects()), false);
    std::string scratch;
    for (uint64_t i = 0; i < manifest.samples();) {
      const uint32_t object = manifest.sample(i).object;
      WholeObjects::ObjectSamples object_samples{.first_sample = i};
      for (; i < manifest.samples() && manifest.sample(i).object == object; ++i) ++object_samples.samples;
      if (object >= seen.size())
        return make_error(Errc::corrupt, "the manifest is damaged: sample " +
                                             std::to_string(object_samples.first_sample) +
                                             " is in no object");
      if (seen[object])
        return make_error(Errc::unsupported,
                          "the samples of '" + std::string(manifest.object_name(object, scratch)) +
                              "' are not consecutive in the manifest, so it cannot be loaded as a whole");
      seen[object] = true;
      objects.push_back(object);
      samples_of_objects.push_back(object_samples);
    }
    return collect(manifest, objects, std::move(samples_of_objects));
  } catch (const std::bad_alloc&) {
    return out_of_memory(manifest);
  }
}

Result<WholeObjects> select_objects(const WholeObjects& all, std::span<const uint64_t> indexes) {
  try {
    std::vector<WholeObjects::ObjectSamples> samples;
    for (const uint64_t index : indexes) samples.push_back(all.samples_of_object[size_t(index)]);
    return collect(all.manifest, indexes, std::move(samples));
  } catch (const std::bad_alloc&) {
    return out_of_memory(all.manifest);
  }
}

}  // namespace penstock
