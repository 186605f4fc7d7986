// Facts that need a record of every single call (`profile run --trace`): the time in which at least one
// thread was in a call, and how many bytes were moved in each interval.
#pragma once

#include <cstdint>
#include <functional>
#include <vector>

#include "profiling/session/intervals.hpp"
#include "profiling/session/session.hpp"

namespace penstock {

// Calls `each` for all segments: one process file after another, and within each in the order of the file.
void each_segment(const Session& session,
                  const std::function<void(const penstock_segment&, const ProcessFile&)>& each);

// Adds up the time that at least one of the added intervals covers. Intervals that overlap or touch are
// merged from time to time. So at most 1 Mi intervals, or twice as many as the merged ones, are in memory.
class IntervalUnion {
 public:
  void add(int64_t begin, int64_t end);
  int64_t length_ns();

 private:
  void merge();
  std::vector<TimeInterval> intervals_;
  size_t merge_size_ = size_t{1} << 20U;
};

// Divides `wall_s` into at most `most_points` equal intervals for a chart, and returns their length in
// seconds. It is 1, 2 or 5 times a power of ten and at least a millisecond.
double series_interval(double wall_s, double most_points);
// Distributes `amount` evenly over the time from begin_s to end_s: each interval of `series` gets the part
// that falls into it.
void add_evenly(std::vector<double>& series, double interval_s, double begin_s, double end_s, double amount);

struct SegmentFacts {
  uint64_t segments = 0;
  uint64_t reads_and_writes = 0;
  double io_s = 0;       // time in which at least one thread of any process was in a call
  int64_t first_ns = 0;  // begin of the first recorded call, since 1970
  int64_t last_ns = 0;   // end of the last recorded call, since 1970
  double interval_s = 1;
  std::vector<double> bytes_read;  // one value for each interval, counted from the session's begin
  std::vector<double> bytes_written;
};

// Calculates SegmentFacts from the segments of wanted files. Their intervals divide the `wall_s` seconds that
// begin at `begin_ns` (realtime).
SegmentFacts inspect_segments(const Session& session, const std::function<bool(uint64_t file)>& wanted,
                              int64_t begin_ns, double wall_s);

}  // namespace penstock
