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
  double interval = 0.001;
  const double steps[] = {2, 2.5, 2};
  for (std::size_t i = 0; interval * most_points < wall_s && i < 60; ++i) interval *= steps[i % 3];
  return interval;
}

void spread(std::vector<double>& series, double interval_s, double begin_s, double end_s, double amount) {
  if (series.empty() || !(end_s >= begin_s) || end_s < 0) return;
  const double last = static_cast<double>(series.size() - 1);
  const auto index = [&](double at_s) {
    return static_cast<std::size_t>(std::clamp(std::floor(at_s / interval_s), 0.0, last));
  };
  const std::size_t from = index(begin_s);
  const std::size_t to = index(end_s);
  const double length = end_s - begin_s;
  for (std::size_t i = from; i <= to; ++i) {
    const double left = std::max(begin_s, static_cast<double>(i) * interval_s);
    const double right = std::min(end_s, static_cast<double>(i + 1) * interval_s);
    series[i] += from == to || length <= 0 ? amount / static_cast<double>(to - from + 1)
                                           : amount * std::max(0.0, right - left) / length;
  }
}

void each_segment(const Session& session,
                  const std::function<void(const penstock_segment&, const ProcessFile&)>& each) {
  for (const auto& process_file : session.process_files)
    process_file->view().each<penstock_segment>(
        PENSTOCK_BLOCK_SEGMENTS,
        [&](const penstock_segment& segment, std::uint64_t) { each(segment, *process_file); });
}

void IntervalUnion::add(std::int64_t begin, std::int64_t end) {
  if (end <= begin) return;
  if (!pieces_.empty() && begin >= pieces_.back().begin && begin <= pieces_.back().end) {
    pieces_.back().end = std::max(pieces_.back().end, end);
    return;
  }
  pieces_.push_back({begin, end});
  if (pieces_.size() >= merge_at_) merge();
}

void IntervalUnion::merge() {
  pieces_ = merged(std::move(pieces_));
  merge_at_ = std::max(merge_at_, 2 * pieces_.size());
}

std::int64_t IntervalUnion::length_ns() {
  merge();
  double sum = 0;
  for (const TimeInterval& piece : pieces_)
    sum += static_cast<double>(piece.end) - static_cast<double>(piece.begin);
  return static_cast<std::int64_t>(std::min(sum, 9e18));
}

SegmentFacts inspect_segments(const Session& session, const std::function<bool(std::uint64_t file)>& wanted,
                              std::int64_t begin_ns, double wall_s) {
  SegmentFacts facts;
  facts.interval_s = series_interval(wall_s, kMostPoints);
  const auto points =
      static_cast<std::size_t>(std::clamp(std::ceil(wall_s / facts.interval_s), 1.0, kMostPoints));
  facts.bytes_read.resize(points);
  facts.bytes_written.resize(points);
  IntervalUnion busy;
  each_segment(session, [&](const penstock_segment& segment, const ProcessFile& process_file) {
    if (segment.call >= PENSTOCK_CALLS || segment.layer >= PENSTOCK_LAYERS || !wanted(segment.file)) return;
    const SessionClock& clock = process_file.view().clock();
    const std::int64_t begin = clock.realtime_at(segment.begin_ticks);
    const std::int64_t end = clock.realtime_at(segment.end_ticks);
    facts.first_ns = facts.segments == 0 ? begin : std::min(facts.first_ns, begin);
    facts.last_ns = facts.segments == 0 ? end : std::max(facts.last_ns, end);
    ++facts.segments;
    busy.add(begin, end);
    const bool moves = segment.call == PENSTOCK_CALL_READ || segment.call == PENSTOCK_CALL_WRITE;
    if (!moves || segment.failed != 0 || !moves_bytes_of_its_own(segment.layer)) return;
    ++facts.reads_and_writes;
    const auto seconds = [&](std::int64_t ns) {
      return (static_cast<double>(ns) - static_cast<double>(begin_ns)) / 1e9;
    };
    spread(segment.call == PENSTOCK_CALL_READ ? facts.bytes_read : facts.bytes_written, facts.interval_s,
           seconds(begin), seconds(end), static_cast<double>(segment.length));
  });
  facts.io_s = static_cast<double>(busy.length_ns()) / 1e9;
  return facts;
}

}  // namespace penstock
