// Adds up the time in which at least one of several threads worked: a moment counts once, even if many
// threads work in it. The method is that of the post-processors of Chowdhury et al. (NERSC): sort the
// intervals by begin, merge those that overlap or touch, and add their lengths.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace penstock {

// The time from `begin` to just before `end`, in any unit; empty if end <= begin.
struct TimeInterval {
  int64_t begin = 0;
  int64_t end = 0;
  friend bool operator==(const TimeInterval&, const TimeInterval&) = default;
};

// The union of all intervals, sorted by begin. No interval in it is empty, and none overlap or touch.
std::vector<TimeInterval> merged(std::vector<TimeInterval> intervals);

// The total length of a result of merged().
int64_t length(std::span<const TimeInterval> merged);
// The length of the time that is in `merged` and also in `other`; both are results of merged().
int64_t common_length(std::span<const TimeInterval> merged, std::span<const TimeInterval> other);

}  // namespace penstock
