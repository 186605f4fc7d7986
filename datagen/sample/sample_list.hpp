// The list of what to read: samples and the objects that contain them. Readers and yardsticks get the same
// list.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace penstock {

// Object names and the samples in them, compactly: 24 bytes a sample and the names themselves. Built by one
// thread, then read by any.
class SampleList {
 public:
  struct Sample {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t object = 0;
  };

  std::uint32_t add_object(std::string_view name);
  void add_sample(const Sample& sample) { samples_.push_back(sample); }

  // A whole object as one sample.
  void add(std::string_view name, std::uint64_t bytes) { add_sample({0, bytes, add_object(name)}); }

  std::uint64_t size() const { return samples_.size(); }
  std::uint64_t objects() const { return starts_.size(); }
  const Sample& operator[](std::uint64_t i) const { return samples_[i]; }
  // Asks for what [i] and, where samples are whole objects, its name look at: a long list is in no cache.
  void prefetch(std::uint64_t i) const {
    __builtin_prefetch(samples_.data() + i);
    if (i < starts_.size()) __builtin_prefetch(starts_.data() + i);
  }
  // A zero follows it, so that its data() is a C string.
  std::string_view name(std::uint32_t object) const {
    const std::uint64_t end = object + 1 < starts_.size() ? starts_[object + 1] : names_.size();
    return {names_.data() + starts_[object], end - starts_[object] - 1};
  }
  SampleList part(std::uint64_t begin, std::uint64_t end) const;  // those samples and the objects they are in
  std::uint64_t bytes() const;
  std::uint64_t largest() const;

 private:
  std::vector<char> names_;
  std::vector<std::uint64_t> starts_;
  std::vector<Sample> samples_;
};

// How many of that many objects a reader may hold open: a quarter of the descriptors that this process may
// have.
std::uint64_t objects_held_open(std::uint64_t objects);

}  // namespace penstock
