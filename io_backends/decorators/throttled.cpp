// Threads: any thread calls the back end, its Readers and its Namespace. One thread at a time calls a Writer
// or a Queue. All of them share one Pace, whose two buckets are atomics. There is no lock here.
// Memory: after a Reader, Writer or Queue is made, only errors allocate here.
// Ctrl-C: every sleep ends within 50 ms with `interrupted`. A call with a latency that starts after the
// signal fails at once, also one that cleans up, unless its thread has an IgnoreInterrupt.
// Crash: the state is in memory only. What the wrapped back end promises still holds.
#include "io_backends/decorators/throttled.hpp"

#include <algorithm>
#include <cmath>
#include <thread>

#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/decorators/wrapper.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

// The limits of one throttled back end. All of its parts share it.
class Pace {
 public:
  explicit Pace(const Throttling& throttling)
      : read(throttling.read_bytes_per_s, throttling.latency),
        write(throttling.write_bytes_per_s, throttling.latency),
        latency_(throttling.latency) {}

  // A call that moves no bytes waits before the wrapped call: if a signal ends the wait, no name has changed.
  template <class Inner>
  auto around(const BackendCall& call, Inner inner) -> decltype(inner()) {
    switch (call.kind) {
      case CallKind::read:
      case CallKind::view:
      case CallKind::read_object:
        return moved(read, call, inner);
      case CallKind::write:
        return moved(write, call, inner);
      default:
        PENSTOCK_TRY(sleep_until(Clock::now() + latency_));
        return inner();
    }
  }
  static Result<void> wait(TokenBucket& pipe, Time due) {
    if (due <= Clock::now()) return success();
    PENSTOCK_TRY(sleep_until(due));
    pipe.add_lateness(due, Clock::now());
    return success();
  }

  TokenBucket read;
  TokenBucket write;

 private:
  // Does the call and returns when its bytes are due. pass() comes before the call, so that the time of the
  // call is part of the wait. The bytes are moved before the wait: if a signal ends the wait, the caller gets
  // an error although they are moved.
  template <class Inner>
  static auto moved(TokenBucket& pipe, const BackendCall& call, Inner inner) -> decltype(inner()) {
    const Time begin = Clock::now();
    Time due = pipe.pass(call.bytes, begin);
    auto result = inner();
    if (!result.ok()) return result;
    // The size of a whole object without a length hint is known only after the call.
    if (call.bytes == 0) due = pipe.pass(bytes_moved(call, result), begin);
    PENSTOCK_TRY(wait(pipe, due));
    return result;
  }

  const std::chrono::nanoseconds latency_;
};

// An operation is in flights_ while the wrapped queue has it, and then in held_ until it is due. One thread
// at a time. Nothing allocates after the constructor: all vectors have room for `depth` operations.
class ThrottledQueue final : public Queue {
 public:
  ThrottledQueue(std::unique_ptr<Queue> inner, std::size_t depth, Pace& pace)
      : inner_(std::move(inner)), pace_(pace), flights_(depth), scratch_(depth) {
    forwarded_.reserve(depth);
    held_.reserve(depth);
  }

  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }
  std::size_t submit(std::span<const Operation> operations, Start start) override;
  std::size_t reap(std::span<Completion> out, std::size_t at_least) override;
  std::size_t in_flight() const override { return flights_.in_flight() + held_.size(); }

 private:
  struct Held {
    Time due;
    Completion completion;
  };
  static bool later(const Held& a, const Held& b) { return a.due > b.due; }

  void hold(std::size_t wanted);

  // If operations are in flight at destruction, the wrapped queue waits for them or cuts them off. It does
  // not wait until they are due.
  const std::unique_ptr<Queue> inner_;
  Pace& pace_;
  FlightTable<Pace> flights_;
  std::vector<Completion> scratch_;
  std::vector<Operation> forwarded_;
  std::vector<Held> held_;  // a heap with the earliest due time in front
};

// Does not sleep. Each operation gets its own due time here, so that depth hides latency.
std::size_t ThrottledQueue::submit(std::span<const Operation> operations, Start start) {
  const Time now = Clock::now();
  operations = operations.first(std::min(operations.size(), scratch_.size() - in_flight()));
  forwarded_.clear();
  for (const Operation& operation : operations) {
    const BackendCall call = FlightTable<Pace>::call_of(operation);
    const Time due = pace_.read.pass(call.bytes, now);
    forwarded_.push_back(flights_.add(operation, {.call = call, .submitted = now, .due = due}));
  }
  std::span<const Operation> rest(forwarded_);
  // The wrapped queue is as deep as this one, so it has room for all.
  while (!rest.empty()) rest = rest.subspan(inner_->submit(rest, start));
  return operations.size();
}

// Moves the completions of the wrapped queue to held_. Waits until held_ has `wanted` completions, due or
// not. Ctrl-C does not end this wait: the wrapped queue still writes to the caller's memory.
void ThrottledQueue::hold(std::size_t wanted) {
  const std::size_t missing = wanted > held_.size() ? wanted - held_.size() : 0;
  const std::size_t count = inner_->reap(scratch_, missing);
  for (std::size_t i = 0; i < count; ++i) {
    Completion& done = scratch_[i];
    Flight flight = flights_.take(done);
    // Without a length hint the size is known only after the read.
    if (flight.call.bytes == 0 && done.bytes.ok())
      flight.due = pace_.read.pass(*done.bytes, flight.submitted);
    held_.push_back({flight.due, std::move(done)});
    std::push_heap(held_.begin(), held_.end(), later);
  }
}

std::size_t ThrottledQueue::reap(std::span<Completion> out, std::size_t at_least) {
  const std::size_t wanted = std::min({at_least, in_flight(), out.size()});
  hold(wanted);
  std::size_t count = 0;
  while (count < out.size() && !held_.empty()) {
    const Time due = held_.front().due;
    if (count >= wanted && due > Clock::now()) break;
    // After Ctrl-C it returns the completion early: its bytes have arrived. Only the first entry may get an
    // earlier time, because any other change would break the order of the heap.
    if (!Pace::wait(pace_.read, due)) held_.front().due = Time::min();
    std::pop_heap(held_.begin(), held_.end(), later);
    out[count++] = std::move(held_.back().completion);
    held_.pop_back();
  }
  return count;
}

}  // namespace

// The three functions of the bucket are called by any thread, without a lock. The two atomics guard no other
// memory, hence relaxed. Each loop repeats until no other thread has changed the value in between, so no time
// is lost and none is counted twice.
void TokenBucket::add_lateness(Time due, Time now) {
  if (latency_ns_ == 0) return;  // without a latency the bucket saves up all idle time
  constexpr std::int64_t kMost = std::chrono::nanoseconds(kBurst).count();
  const std::int64_t more = std::max<std::int64_t>(std::chrono::nanoseconds(now - due).count(), 0);
  std::int64_t late = late_ns_.load(std::memory_order_relaxed);
  while (!late_ns_.compare_exchange_weak(late, std::min(late + std::min(more, kMost), kMost),
                                         std::memory_order_relaxed))
    continue;
}

std::int64_t TokenBucket::take_lateness(std::int64_t at_most) {
  std::int64_t late = late_ns_.load(std::memory_order_relaxed);
  std::int64_t taken = 0;
  do {
    taken = std::min(late, at_most);
  } while (!late_ns_.compare_exchange_weak(late, late - taken, std::memory_order_relaxed));
  return taken;
}

TokenBucket::Time TokenBucket::pass(std::uint64_t bytes, Time now) {
  const Time arrived = now + std::chrono::nanoseconds(latency_ns_);
  if (bytes_per_s_ == 0 || bytes == 0) return arrived;
  constexpr double kNsPerS = 1e9;
  constexpr double kLongest = 1e18;  // 30 years; more would overflow 64 bits
  const double ns =
      std::min(static_cast<double>(bytes) * kNsPerS / static_cast<double>(bytes_per_s_), kLongest);
  const auto cost = static_cast<std::int64_t>(std::llround(ns));
  const auto now_ns = std::chrono::nanoseconds(now.time_since_epoch()).count();
  std::int64_t free_at = free_at_ns_.load(std::memory_order_relaxed);
  const std::int64_t burst_ns = std::chrono::nanoseconds(kBurst).count();
  // The comparison comes first: free_at starts at INT64_MIN, and now_ns minus that would overflow.
  const std::int64_t idle =
      free_at < now_ns - burst_ns ? burst_ns : std::max<std::int64_t>(now_ns - free_at, 0);
  // Before the loop: a second try of the loop must not take lateness twice.
  const std::int64_t start = now_ns + latency_ns_ - (latency_ns_ == 0 ? burst_ns : take_lateness(idle));
  const std::int64_t latest = now_ns + static_cast<std::int64_t>(kLongest);
  std::int64_t next = 0;
  do {
    next = std::min(std::max(free_at, start) + cost, latest);
  } while (!free_at_ns_.compare_exchange_weak(free_at, next, std::memory_order_relaxed));
  return std::max(arrived, Time(std::chrono::nanoseconds(next)));
}

Throttling Throttling::from(const Options& options) {
  Throttling throttling;
  if (options.has("limit"))
    throttling.read_bytes_per_s = throttling.write_bytes_per_s = options.size("limit");
  if (options.has("read_limit")) throttling.read_bytes_per_s = options.size("read_limit");
  if (options.has("write_limit")) throttling.write_bytes_per_s = options.size("write_limit");
  if (options.has("latency")) throttling.latency = options.duration("latency");
  return throttling;
}

std::unique_ptr<Backend> throttled(std::unique_ptr<Backend> inner, const Throttling& throttling) {
  return std::make_unique<DecoratedBackend<Pace, ThrottledQueue>>(std::move(inner), true, throttling);
}

}  // namespace penstock
