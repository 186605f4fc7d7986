#include "profiling/session/session_reading.hpp"

#include <algorithm>

#include "profiling/session/intervals.hpp"

namespace penstock {
namespace {

// Returns the largest number of intervals that contain the same moment.
uint64_t most_at_once(const std::vector<TimeInterval>& times) {
  std::vector<std::pair<int64_t, int>> changes;
  for (const TimeInterval& time : times) {
    changes.emplace_back(time.begin, 1);
    changes.emplace_back(std::max(time.begin, time.end), -1);
  }
  // If one interval begins where another ends, the begin is counted first. So intervals that touch count as
  // overlapping.
  std::sort(changes.begin(), changes.end(), [](const auto& a, const auto& b) {
    return a.first != b.first ? a.first < b.first : a.second > b.second;
  });
  int open_intervals = 0;
  int most_open = 0;
  for (const auto& [when, change] : changes) most_open = std::max(most_open, open_intervals += change);
  return uint64_t(most_open);
}

// When the program read in one repeat of its measurement, and how many bytes.
struct Repeat {
  std::vector<TimeInterval> times;
  uint64_t bytes = 0;
};

double seconds_of(std::vector<TimeInterval> times) {
  return double(length(merged(std::move(times)))) / 1e9;
}

}  // namespace

const ThreadReading& add_reading(ThreadReadings& threads, const penstock_counters& counters,
                                 const ProcessFile& process_file) {
  ThreadReading& thread = threads[{&process_file, counters.thread}];
  thread.bytes += counters.bytes_read;
  process_file.view().clock().extend(thread.first_ns, thread.last_ns, counters.first_read_ticks,
                                     counters.last_read_ticks);
  return thread;
}

uint64_t threads_at_once(const ThreadReadings& threads, uint64_t all_bytes) {
  std::vector<TimeInterval> times;
  for (const auto& [key, thread] : threads)
    if (thread.bytes > 0 && thread.bytes >= all_bytes / 100)
      times.push_back({thread.first_ns, thread.last_ns});
  return most_at_once(times);
}

Reading reading_of_spans(const Session& session) {
  Reading reading;
  ThreadReadings threads;
  TimeInterval sample_time{INT64_MAX, INT64_MIN};
  std::vector<TimeInterval> intervals;
  std::map<uint32_t, Repeat> repeats;
  uint64_t sample_bytes = 0;
  for (const auto& process_file : session.process_files)
    process_file->view().each<penstock_span>(PENSTOCK_BLOCK_SPANS, [&](const penstock_span& span, uint64_t) {
      if (span.component != PENSTOCK_READ || span.bytes == 0) return;
      const SessionClock& clock = process_file->view().clock();
      const TimeInterval time{clock.realtime_ns(span.begin_ns), clock.realtime_ns(span.end_ns)};
      reading.bytes += span.bytes;
      reading.busy_s += double(std::max<int64_t>(time.end - time.begin, 0)) / 1e9;
      if (span.number == PENSTOCK_NO_NUMBER) {
        intervals.push_back(time);
        repeats[span.epoch].times.push_back(time);
        repeats[span.epoch].bytes += span.bytes;
        return;
      }
      ThreadReading& thread = threads[{process_file.get(), span.thread}];
      thread.bytes += span.bytes;
      thread.first_ns = std::min(thread.first_ns, time.begin);
      thread.last_ns = std::max(thread.last_ns, time.end);
      sample_time = {std::min(sample_time.begin, time.begin), std::max(sample_time.end, time.end)};
      sample_bytes += span.bytes;
    });
  reading.threads = std::max(threads_at_once(threads, sample_bytes), most_at_once(intervals));
  if (sample_bytes == 0)
    for (auto& [number, repeat] : repeats)
      if (const double wall_s = seconds_of(std::move(repeat.times)); wall_s > 0)
        reading.bytes_per_s.push_back(double(repeat.bytes) / wall_s);
  if (sample_time.begin < sample_time.end) intervals.push_back(sample_time);
  reading.wall_s = seconds_of(std::move(intervals));
  return reading;
}

}  // namespace penstock
