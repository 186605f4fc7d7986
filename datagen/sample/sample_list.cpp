#include "datagen/sample/sample_list.hpp"

#include <sys/resource.h>

#include <algorithm>

namespace penstock {

std::uint32_t SampleList::add_object(std::string_view name) {
  starts_.push_back(names_.size());
  names_.insert(names_.end(), name.begin(), name.end());
  names_.push_back('\0');
  return static_cast<std::uint32_t>(starts_.size() - 1);
}

SampleList SampleList::part(std::uint64_t begin, std::uint64_t end) const {
  SampleList some;
  std::vector<std::uint32_t> numbers(objects(), UINT32_MAX);
  for (std::uint64_t i = begin; i < end; ++i) {
    Sample sample = samples_[i];
    std::uint32_t& number = numbers[sample.object];
    if (number == UINT32_MAX) number = some.add_object(name(sample.object));
    sample.object = number;
    some.add_sample(sample);
  }
  return some;
}

std::uint64_t SampleList::bytes() const {
  std::uint64_t sum = 0;
  for (const Sample& sample : samples_) sum += sample.length;
  return sum;
}

std::uint64_t SampleList::largest() const {
  std::uint64_t most = 0;
  for (const Sample& sample : samples_) most = std::max(most, sample.length);
  return most;
}

std::uint64_t max_open_objects(std::uint64_t objects) {
  rlimit limit{};
  if (::getrlimit(RLIMIT_NOFILE, &limit) != 0) return std::min<std::uint64_t>(objects, 64);
  return std::min(objects, std::clamp<std::uint64_t>(limit.rlim_cur / 4, 16, 1U << 16));
}

}  // namespace penstock
