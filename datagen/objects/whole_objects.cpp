#include "datagen/objects/whole_objects.hpp"

#include <algorithm>
#include <new>
#include <utility>

namespace penstock {
namespace {

// Collects objects of `from` as the samples of a manifest of their own.
class Collector {
 public:
  explicit Collector(const Manifest& from) : from_(from), builder_(facts_of(from)) {}

  void add(std::uint64_t object, const WholeObjects::Held& held) {
    const std::uint64_t bytes = from_.object_bytes(object);
    const std::uint32_t place = builder_.add_object(from_.object_name(object, scratch_), bytes);
    builder_.add_sample({.length = bytes, .object = place});
    held_.push_back(held);
  }
  Result<WholeObjects> finish() {
    PENSTOCK_ASSIGN(std::vector<std::byte> bytes, builder_.finish());
    PENSTOCK_ASSIGN(Manifest manifest, Manifest::from_bytes(std::move(bytes)));
    return WholeObjects{std::move(manifest), std::move(held_)};
  }

 private:
  // What a file is as a whole is not what its samples are.
  static ManifestFacts facts_of(const Manifest& from) {
    ManifestFacts facts = from.facts();
    facts.codec = "raw";
    facts.checksums = facts.object_checksums = false;
    facts.label_names.clear();
    return facts;
  }

  const Manifest& from_;
  ManifestBuilder builder_;
  std::vector<WholeObjects::Held> held_;
  std::string scratch_;
};

Error out_of_memory(const Manifest& manifest) {
  return {Errc::exhausted, 0, "no memory for a list of " + std::to_string(manifest.objects()) + " objects"};
}

bool fewer(const WholeObjects::Held& a, const WholeObjects::Held& b) {
  return a.samples < b.samples;
}

}  // namespace

std::uint32_t WholeObjects::most_held() const {
  return held.empty() ? 0 : std::max_element(held.begin(), held.end(), fewer)->samples;
}

std::uint32_t WholeObjects::least_held() const {
  return held.empty() ? 0 : std::min_element(held.begin(), held.end(), fewer)->samples;
}

Result<WholeObjects> whole_objects(const Manifest& manifest) {
  try {
    Collector collected(manifest);
    std::vector<bool> seen(static_cast<std::size_t>(manifest.objects()), false);
    std::string scratch;
    for (std::uint64_t i = 0; i < manifest.samples();) {
      const std::uint32_t object = manifest.sample(i).object;
      WholeObjects::Held held{.first = i};
      for (; i < manifest.samples() && manifest.sample(i).object == object; ++i) ++held.samples;
      if (object >= seen.size())
        return make_error(Errc::corrupt, "the manifest is damaged: sample " + std::to_string(held.first) +
                                             " is in no object");
      if (seen[object])
        return make_error(Errc::unsupported,
                          "the samples of '" + std::string(manifest.object_name(object, scratch)) +
                              "' do not follow each other in the manifest: it cannot be loaded as a whole");
      seen[object] = true;
      collected.add(object, held);
    }
    return collected.finish();
  } catch (const std::bad_alloc&) {
    return out_of_memory(manifest);
  }
}

Result<WholeObjects> selected(const WholeObjects& all, std::span<const std::uint64_t> places) {
  try {
    Collector collected(all.manifest);
    for (const std::uint64_t place : places) collected.add(place, all.held[static_cast<std::size_t>(place)]);
    return collected.finish();
  } catch (const std::bad_alloc&) {
    return out_of_memory(all.manifest);
  }
}

}  // namespace penstock
