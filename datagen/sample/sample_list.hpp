// The list of samples to read, with the objects that contain them. Readers use the same list as the loops
// with which they are compared (datagen/yardsticks).
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock {

// The samples and the object names, stored compactly: 24 bytes for each sample, plus the names. One thread
// builds it; after that any thread may read it.
class SampleList {
 public:
  struct Sample {
    uint64_t offset = 0;
    uint64_t length = 0;
    uint32_t object = 0;
  };

  uint32_t add_object(std::string_view name);
  void add_sample(const Sample& sample) { samples_.push_back(sample); }

  // Adds a whole object as one sample.
  void add(std::string_view name, uint64_t bytes) { add_sample({0, bytes, add_object(name)}); }

  uint64_t size() const { return samples_.size(); }
  uint64_t objects() const { return name_starts_.size(); }
  const Sample& operator[](uint64_t i) const { return samples_[i]; }
  // Starts to load sample number `i` into the processor's cache and, if samples are whole objects, the
  // position of its name. A long list does not fit into the cache.
  void prefetch(uint64_t i) const {
    __builtin_prefetch(samples_.data() + i);
    if (i < name_starts_.size()) __builtin_prefetch(name_starts_.data() + i);
  }
  // A terminating 0 follows the name, so its data() is a C string.
  std::string_view name(uint32_t object) const {
    const uint64_t end = object + 1 < name_starts_.size() ? name_starts_[object + 1] : names_.size();
    return {names_.data() + name_starts_[object], end - name_starts_[object] - 1};
  }
  // A list of the samples from `begin` to `end` - 1, with their objects.
  SampleList part(uint64_t begin, uint64_t end) const;
  uint64_t bytes() const;
  uint64_t largest_bytes() const;

 private:
  std::vector<char> names_;
  std::vector<uint64_t> name_starts_;
  std::vector<Sample> samples_;
};

// How many of `objects` objects a reader may hold open. It is a quarter of the descriptors that this process
// may have, but at least 16 and at most 65,536. It is 64 if the limit is unknown. It is never more than
// `objects`.
uint64_t max_open_objects(uint64_t objects);

}  // namespace penstock
