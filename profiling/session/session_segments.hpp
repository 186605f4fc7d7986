// What can be said only where single calls were kept (`profile run --trace`): the time that at least one
// thread was in a call, and how many bytes moved when.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profiling/session/intervals.hpp"
#include "profiling/session/session.hpp"

namespace penstock {

// All segments, image by image, each image's as its threads kept them.
void each_segment(const Session& session,
                  const std::function<void(const penstock_segment&, const SessionImage&)>& each);

// Keeps the union of intervals while they are added; memory grows with the intervals that are left.
class IntervalUnion {
 public:
  void add(std::int64_t begin, std::int64_t end);
  std::int64_t length_ns();

 private:
  void merge();
  std::vector<TimeInterval> pieces_;
  std::size_t merge_at_ = std::size_t{1} << 20U;
};

// How long the intervals of a series over `wall_s` are: 1, 2 or 5 times a power of ten, at least a
// millisecond, so that there are at most that many.
double series_interval(double wall_s, double most_points);
// Adds an amount to a series, evenly over the time that it took.
void spread(std::vector<double>& series, double interval_s, double begin_s, double end_s, double amount);

struct SegmentFacts {
  std::uint64_t segments = 0;
  std::uint64_t reads_and_writes = 0;
  double io_s = 0;            // at least one thread of any process was in a call
  std::int64_t first_ns = 0;  // realtime: the first call's begin, the last one's end
  std::int64_t last_ns = 0;
  double interval_s = 1;
  std::vector<double> bytes_read;  // in each interval since the session's begin
  std::vector<double> bytes_written;
};

// Of the segments whose file is wanted, from `begin_ns` (realtime) on for `wall_s`.
SegmentFacts inspect_segments(const Session& session, const std::function<bool(std::uint64_t file)>& wanted,
                              std::int64_t begin_ns, double wall_s);

}  // namespace penstock
