#include "profiling/session/session_segments.hpp"

#include <algorithm>
#include <cmath>
#include <utility>

#include "profiling/session/layers.hpp"

namespace penstock {
namespace {

constexpr double kMostPoints = 300;

}  // namespace

double series_interval(double wall_s, double most_points) {
  double interval_s = 0.001;
  const double steps[] = {2, 2.5, 2};
  for (size_t i = 0; interval_s * most_points < wall_s && i < 60; ++i) interval_s *= steps[i % 3];
  return interval_s;
}

void add_evenly(std::vector<double>& series, double interval_s, double begin_s, double end_s, double amount) {
  if (series.empty() || !(end_s >= begin_s) || end_s < 0) return;
  const double last_index = double(series.size() - 1);
  const auto index = [&](double at_s) {
    return size_t(std::clamp(std::floor(at_s / interval_s), 0.0, last_index));
  };
  const size_t first_interval = index(begin_s);
  const size_t last_interval = index(end_s);
  const double length = end_s - begin_s;
  for (size_t i = first_interval; i <= last_interval; ++i) {
    const double overlap_begin = std::max(begin_s, double(i) * interval_s);
    const double overlap_end = std::min(end_s, double(i + 1) * interval_s);
    series[i] += first_interval == last_interval || length <= 0
                     ? amount / double(last_interval - first_interval + 1)
                     : amount * std::max(0.0, overlap_end - overlap_begin) / length;
  }
}

void each_segment(const Session& session,
                  const std::function<void(const penstock_segment&, const ProcessFile&)>& each) {
  for (const auto& process_file : session.process_files)
    process_file->view().each<penstock_segment>(
        PENSTOCK_BLOCK_SEGMENTS,
        [&](const penstock_segment& segment, uint64_t) { each(segment, *process_file); });
}

void IntervalUnion::add(int64_t begin, int64_t end) {
  if (end <= begin) return;
  if (!intervals_.empty() && begin >= intervals_.back().begin && begin <= intervals_.back().end) {
    intervals_.back().end = std::max(intervals_.back().end, end);
    return;
  }
  intervals_.push_back({begin, end});
  if (intervals_.size() >= merge_size_) merge();
}

void IntervalUnion::merge() {
  intervals_ = merged(std::move(intervals_));
  merge_size_ = std::max(merge_size_, 2 * intervals_.size());
}

int64_t IntervalUnion::length_ns() {
  merge();
  double sum = 0;
  for (const TimeInterval& interval : intervals_) sum += double(interval.end) - double(interval.begin);
  return int64_t(std::min(sum, 9e18));
}

SegmentFacts inspect_segments(const Session& session, const std::function<bool(uint64_t file)>& wanted,
                              int64_t begin_ns, double wall_s) {
  SegmentFacts facts;
  facts.interval_s = series_interval(wall_s, kMostPoints);
  const auto interval_count = size_t(std::clamp(std::ceil(wall_s / facts.interval_s), 1.0, kMostPoints));
  facts.bytes_read.resize(interval_count);
  facts.bytes_written.resize(interval_count);
  IntervalUnion call_time;
  each_segment(session, [&](const penstock_segment& segment, const ProcessFile& process_file) {
    if (segment.call >= PENSTOCK_CALLS || segment.layer >= PENSTOCK_LAYERS || !wanted(segment.file)) return;
    const SessionClock& clock = process_file.view().clock();
    const int64_t begin = clock.realtime_at(segment.begin_ticks);
    const int64_t end = clock.realtime_at(segment.end_ticks);
    facts.first_ns = facts.segments == 0 ? begin : std::min(facts.first_ns, begin);
    facts.last_ns = facts.segments == 0 ? end : std::max(facts.last_ns, end);
    ++facts.segments;
    call_time.add(begin, end);
    const bool moves = segment.call == PENSTOCK_CALL_READ || segment.call == PENSTOCK_CALL_WRITE;
    if (!moves || segment.failed != 0 || !moves_bytes_of_its_own(segment.layer)) return;
    ++facts.reads_and_writes;
    const auto seconds = [&](int64_t ns) { return (double(ns) - double(begin_ns)) / 1e9; };
    add_evenly(segment.call == PENSTOCK_CALL_READ ? facts.bytes_read : facts.bytes_written, facts.interval_s,
               seconds(begin), seconds(end), double(segment.length));
  });
  facts.io_s = double(call_time.length_ns()) / 1e9;
  return facts;
}

}  // namespace penstock
