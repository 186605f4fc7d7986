// Measures how long each operation of a back end takes, and on request writes a trace of them. No other
// decorator measures time.
//
// It is the outermost decorator, so that it measures the time that the caller waits. The time of a blocking
// call is from its begin to its return. The time of an operation of a Queue is from submit() until reap()
// returns it. The measurement of each call or operation costs two reads of the clock and one addition to a
// histogram. Threads share a histogram and its lock only if more than 64 threads make calls.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/histogram.hpp"
#include "io_backends/decorators/backend_call.hpp"

namespace penstock {

std::string_view timed_call_name(CallKind call);

struct CallTimes {
  Histogram ns;         // durations in nanoseconds of all calls, including those that failed
  uint64_t bytes = 0;   // bytes that successful calls have read or written
  uint64_t errors = 0;  // calls that failed

  void merge(const CallTimes& other);
};

using TimesByCall = std::map<CallKind, CallTimes>;
void merge(TimesByCall& into, const TimesByCall& from);

// The counts and times of the calls of a traced back end. A call is counted when it returns. Any thread may
// call this class.
class TimedCalls {
 public:
  virtual ~TimedCalls() = default;
  // Returns the counts of all calls since the last take_new_calls(). The first take_new_calls() returns the
  // counts since the beginning.
  virtual TimesByCall take_new_calls() = 0;
  // Returns the counts of all calls since the beginning. Does not change what take_new_calls() returns.
  virtual TimesByCall totals() = 0;
};

// The largest number of calls in a trace. The file also says how many further calls were made. The file is
// written when the back end is destroyed: JSON for chrome://tracing and Perfetto, one event a line, a row for
// each thread and for each slot of its queues.
inline constexpr uint64_t kMaxCallsInTrace = 1U << 20U;

// Writes no trace if `trace_file` is "". Fails if the file cannot be created. If it cannot be written later,
// stderr gets a warning.
Result<std::unique_ptr<Backend>> traced(std::unique_ptr<Backend> inner, const std::string& trace_file);

// The counts of a back end that traced() made; null for any other back end.
TimedCalls* timed_calls(Backend& backend);

// Returns TimedCalls::take_new_calls() of a back end that traced() made; empty for any other back end.
TimesByCall take_call_times(Backend& backend);

}  // namespace penstock
