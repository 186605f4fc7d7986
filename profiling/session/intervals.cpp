#include "profiling/session/intervals.hpp"

#include <algorithm>
#include <cstddef>

namespace penstock {

std::vector<TimeInterval> merged(std::vector<TimeInterval> intervals) {
  std::erase_if(intervals, [](const TimeInterval& one) { return one.end <= one.begin; });
  std::sort(intervals.begin(), intervals.end(),
            [](const TimeInterval& a, const TimeInterval& b) { return a.begin < b.begin; });
  size_t count = 0;
  for (const TimeInterval& next : intervals) {
    if (count > 0 && next.begin <= intervals[count - 1].end) {
      intervals[count - 1].end = std::max(intervals[count - 1].end, next.end);
    } else {
      intervals[count++] = next;
    }
  }
  intervals.resize(count);
  return intervals;
}

int64_t length(std::span<const TimeInterval> merged) {
  int64_t sum = 0;
  for (const TimeInterval& one : merged) sum += one.end - one.begin;
  return sum;
}

int64_t common_length(std::span<const TimeInterval> merged, std::span<const TimeInterval> other) {
  int64_t sum = 0;
  while (!merged.empty() && !other.empty()) {
    const TimeInterval& a = merged.front();
    const TimeInterval& b = other.front();
    sum += std::max<int64_t>(0, std::min(a.end, b.end) - std::max(a.begin, b.begin));
    (a.end < b.end ? merged : other) = (a.end < b.end ? merged : other).subspan(1);
  }
  return sum;
}

}  // namespace penstock
