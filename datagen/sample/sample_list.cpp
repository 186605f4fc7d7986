#include "datagen/sample/sample_list.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace penstock {

uint32_t SampleList::add_object(std::string_view name) {
  name_starts_.push_back(names_.size());
  names_.insert(names_.end(), name.begin(), name.end());
  names_.push_back('\0');
  return uint32_t(name_starts_.size() - 1);
}

SampleList SampleList::part(uint64_t begin, uint64_t end) const {
  SampleList selected;
  std::vector<uint32_t> new_indexes(objects(), UINT32_MAX);
  for (uint64_t i = begin; i < end; ++i) {
    Sample sample = samples_[i];
    uint32_t& new_index = new_indexes[sample.object];
    if (new_index == UINT32_MAX) new_index = selected.add_object(name(sample.object));
    sample.object = new_index;
    selected.add_sample(sample);
  }
  return selected;
}

uint64_t SampleList::bytes() const {
  uint64_t sum = 0;
  for (const Sample& sample : samples_) sum += sample.length;
  return sum;
}

uint64_t SampleList::largest_bytes() const {
  uint64_t largest_length = 0;
  for (const Sample& sample : samples_) largest_length = std::max(largest_length, sample.length);
  return largest_length;
}

uint64_t max_open_objects(uint64_t objects) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::min<uint64_t>(objects, 64);
  return std::min(objects, std::clamp<uint64_t>(limit.rlim_cur / 4, 16, 1U << 16));
}

}  // namespace penstock
