// Time that several threads spent at the same thing, counted once: sort by begin, merge what overlaps or
// touches, sum, as the post-processors of Chowdhury et al. (NERSC) do.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

// From begin to before end, in whatever unit; empty where end <= begin.
struct TimeInterval {
  std::int64_t begin = 0;
  std::int64_t end = 0;
  friend bool operator==(const TimeInterval&, const TimeInterval&) = default;
};

// The same points as the union of all: by rising begin, none empty, none that overlap or touch.
std::vector<TimeInterval> merged(std::vector<TimeInterval> intervals);

// Of what merged() gave: the length of the union, and of what is in both of two unions.
std::int64_t length(std::span<const TimeInterval> merged);
std::int64_t common_length(std::span<const TimeInterval> merged, std::span<const TimeInterval> other);

}  // namespace penstock
