#include "datagen/corpus/corpus_samples.hpp"

#include <new>
#include <string>

namespace penstock {

Result<SampleList> corpus_samples(const Manifest& manifest) {
  try {
    SampleList list;
    std::string scratch;
    const uint64_t objects = manifest.objects();
    for (uint64_t i = 0; i < objects; ++i) {
      const std::string_view name = manifest.object_name(i, scratch);
      PENSTOCK_TRY(check_object_name(name));
      list.add_object(name);
    }
    for (uint64_t i = 0; i < manifest.samples(); ++i) {
      const SampleEntry& entry = manifest.sample(i);
      const uint64_t object_bytes = entry.object < objects ? manifest.object_bytes(entry.object) : 0;
      if (entry.object >= objects || entry.offset > object_bytes ||
          entry.length > object_bytes - entry.offset)
        return make_error(Errc::corrupt,
                          "the manifest is damaged: sample " + std::to_string(i) + " is outside its object");
      list.add_sample({.offset = entry.offset, .length = entry.length, .object = entry.object});
    }
    return list;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted,
                      "no memory for the names of " + std::to_string(manifest.samples()) + " samples");
  }
}

}  // namespace penstock
