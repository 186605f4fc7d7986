// The decorator that takes times, the only one: how long each operation took that crossed the seam, and,
// where asked for, which it was.
//
// It stands outside of all others, so that what it sees is what the caller waits for. A blocking call counts
// from its begin to its return; an operation of a Queue from submit() until reap() hands it out. Each costs
// two looks at the clock and an addition into a histogram of the calling thread's.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/histogram.hpp"

namespace penstock {

enum class TimedCall : std::uint8_t {
  open,
  read,         // ReadAt, read_at, read_at_all, view
  close,        // a Reader's end
  read_object,  // ReadObject, read_object
  create,
  write,  // append, write_at
  publish,
  discard,  // the end of a Writer that did not publish
  list,     // with what its visitor does
  stat,     // and Reader::size
  make_folders,
  rename,
  remove,
  sync_folder,
  lock,
};
std::string_view timed_call_name(TimedCall call);

struct CallTimes {
  Histogram ns;              // of all, failures included; its count is theirs
  std::uint64_t bytes = 0;   // read or written by those that did not fail
  std::uint64_t errors = 0;  // those that failed

  void merge(const CallTimes& other);
};

using TimesByCall = std::map<TimedCall, CallTimes>;
void merge(TimesByCall& into, const TimesByCall& from);

// What a traced back end saw. Threads that are inside a call count it when they come out.
class TimedCalls {
 public:
  virtual ~TimedCalls() = default;
  // Since the last take(), or the beginning.
  virtual TimesByCall take() = 0;
  // Since the beginning; forgets nothing.
  virtual TimesByCall all() = 0;
};

// Where a trace is written when the back end ends: JSON that chrome://tracing and Perfetto show, one event a
// line, a row for each thread and for each place in its queues. It holds the first kMostTraced calls and says
// how many came after them.
inline constexpr std::uint64_t kMostTraced = 1U << 20U;

// With `trace_file` "" no trace. Fails where that cannot be created; what goes wrong in writing it later is a
// warning on stderr.
Result<std::unique_ptr<Backend>> traced(std::unique_ptr<Backend> inner, const std::string& trace_file);

// Of a back end that traced() made; null for others.
TimedCalls* timed_calls(Backend& backend);

}  // namespace penstock
