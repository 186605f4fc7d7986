// Steps of a ReadWorker that most runs do not take: waiting for due samples in an open loop, and recording a
// span for the profiler. They run on the thread of the worker. The only lock is that of Arrivals::next_ns(),
// which is held for a few computations.
#include <algorithm>

#include "benchmarks/read/read_worker.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/precise_timers.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {
namespace {

constexpr int64_t kLongestSleepNs = 100'000'000;
// Before a sample is due, the thread spins and reads the clock for this long.
constexpr int64_t kBusyWaitNs = 20'000;

}  // namespace

// Waits for the start of the run and reads, while the timers of this thread are exact (PreciseTimers). The
// constructor makes them exact before wait_at_gate(), where the clock of the run starts. So the measured time
// does not include the time that the constructor takes.
void ReadWorker::wait_and_read_in_open_loop(ReadRun& run) {
  const PreciseTimers precise_timers;
  wait_and_read(run);
}

// Waits until the next sample is due. Returns false if the run ended before that. It sleeps for at most 100
// ms at a time, to notice Ctrl-C. A sleep ends late, because the timer and the wake-up take time. So the last
// 20 us are a busy loop that reads the clock.
bool ReadWorker::wait_until_due(ReadRun& run, int64_t& due_ns, int64_t& now_ns) {
  due_ns = run.arrivals->next_ns();
  if (run.deadline_ns != 0 && due_ns >= run.deadline_ns && !reads_missing_samples_) {
    past_deadline_ = true;
    return false;
  }
  while (now_ns < due_ns) {
    if (run.stopped() || interrupted()) return false;
    if (due_ns - now_ns > kBusyWaitNs)
      run.sleep_until(std::min(due_ns - kBusyWaitNs, now_ns + kLongestSleepNs));
    now_ns = run.now_ns();
    if (now_ns >= next_boundary_ns_) handle_boundary(run, now_ns);
  }
  tally_.late_ns.add(uint64_t(now_ns - due_ns));
  return true;
}

// Records one span for the profiler: how much this worker read, and from when to when. The span starts at the
// end of the ramp, which is the same time for all workers. It ends at the worker's last completion.
void ReadWorker::record_span(const ReadRun& run) const {
  const int64_t ramp_end_ns = run.spec.ramp.count();
  if (tally_.bytes == 0 || last_done_ns_ < ramp_end_ns) return;
  const int64_t start_ns = span_ns(run.start());
  const penstock_span span{.begin_ns = start_ns + ramp_end_ns,
                           .end_ns = start_ns + last_done_ns_,
                           .number = PENSTOCK_NO_NUMBER,
                           .bytes = tally_.bytes,
                           .epoch = *run.spec.measured_repeat,
                           .thread = span_thread(),
                           .component = PENSTOCK_READ,
                           .detail = 0,
                           .reserved = 0};
  penstock_profile_span(&span);
}

}  // namespace penstock
