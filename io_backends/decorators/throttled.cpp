// Threads: any thread calls the back end, its Readers and its Namespace. One thread at a time calls a Writer
// or a Queue. All of them share one Pace, whose two buckets are atomics. There is no lock here.
// Memory: once a Reader, Writer or Queue is made, it allocates only for errors.
// Ctrl-C: after the signal every sleep ends within 50 ms with `interrupted`. With a latency, a call without
// bytes, such as a removal, fails before it is made, even if it cleans up. A read or write is made first, and
// fails if it would have to wait. Only on a thread with an IgnoreInterrupt do calls go on.
// Crash: the state of the buckets is in memory only. What the wrapped back end guarantees after a crash does
// not change.
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

// The limits of one throttled back end, which all of its parts share.
class Pace {
 public:
  explicit Pace(const Throttling& throttling)
      : read_bucket(throttling.read_bytes_per_s, throttling.latency),
        write_bucket(throttling.write_bytes_per_s, throttling.latency),
        latency_(throttling.latency) {}

  // The hook (wrapper.hpp) for each call. A call that moves bytes goes to transfer(). Before any other call,
  // such as a rename, the hook waits for the latency. So if a signal ends that wait, the call is not made and
  // nothing has changed.
  template <class Inner>
  auto around(const BackendCall& call, Inner inner) -> decltype(inner()) {
    switch (call.kind) {
      case CallKind::read:
      case CallKind::view:
      case CallKind::read_object:
        return transfer(read_bucket, call, inner);
      case CallKind::write:
        return transfer(write_bucket, call, inner);
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

  TokenBucket read_bucket;
  TokenBucket write_bucket;

 private:
  // Makes a call that moves bytes, and returns when its bytes are due. The due time is computed before the
  // call (pass()), so the time of the call is a part of the wait. The wait comes after the call. So if a
  // signal ends the wait, the caller gets an error although the bytes have been read or written.
  template <class Inner>
  static auto transfer(TokenBucket& pipe, const BackendCall& call, Inner inner) -> decltype(inner()) {
    const Time begin = Clock::now();
    Time due = pipe.pass(call.bytes, begin);
    auto result = inner();
    if (!result.ok()) return result;
    // If a whole object is read without a length hint, its due time is computed only here, because its size
    // was not known before.
    if (call.bytes == 0) due = pipe.pass(bytes_moved(call, result), begin);
    PENSTOCK_TRY(wait(pipe, due));
    return result;
  }

  const std::chrono::nanoseconds latency_;
};

// A queue whose operations complete only when they are due. flights_ has the operations that the wrapped
// queue is doing. delayed_ has those that are done but that reap() has not returned yet. Only one thread at a
// time may call the queue. Nothing allocates after the constructor: all vectors have room for `depth`
// operations.
class ThrottledQueue final : public Queue {
 public:
  ThrottledQueue(std::unique_ptr<Queue> inner, size_t depth, Pace& pace)
      : inner_(std::move(inner)), pace_(pace), flights_(depth), reaped_(depth) {
    forwarded_.reserve(depth);
    delayed_.reserve(depth);
  }

  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }
  size_t submit(std::span<const Operation> operations, Start start) override;
  size_t reap(std::span<Completion> out, size_t at_least) override;
  size_t in_flight() const override { return flights_.in_flight() + delayed_.size(); }

 private:
  struct Delayed {
    Time due;
    Completion completion;
  };
  static bool due_later(const Delayed& a, const Delayed& b) { return a.due > b.due; }

  void collect(size_t wanted);

  // If operations are in flight at destruction, the wrapped queue waits for them or cancels them. The
  // destructor does not wait until they are due.
  const std::unique_ptr<Queue> inner_;
  Pace& pace_;
  FlightTable<Pace> flights_;
  std::vector<Completion> reaped_;
  std::vector<Operation> forwarded_;
  std::vector<Delayed> delayed_;  // a heap with the earliest due time in front
};

// Gives each operation its own due time and submits it to the wrapped queue, without sleeping. So the waits
// of the operations overlap, and a deeper queue hides the latency.
size_t ThrottledQueue::submit(std::span<const Operation> operations, Start start) {
  const Time now = Clock::now();
  operations = operations.first(std::min(operations.size(), reaped_.size() - in_flight()));
  forwarded_.clear();
  for (const Operation& operation : operations) {
    const BackendCall call = FlightTable<Pace>::call_of(operation);
    const Time due = pace_.read_bucket.pass(call.bytes, now);
    forwarded_.push_back(flights_.add(operation, {.call = call, .submitted = now, .due = due}));
  }
  std::span<const Operation> rest(forwarded_);
  // The wrapped queue is as deep as this one, so it has room for all.
  while (!rest.empty()) rest = rest.subspan(inner_->submit(rest, start));
  return operations.size();
}

// Moves the completions of the wrapped queue to delayed_. Waits until delayed_ has `wanted` completions, due
// or not. Ctrl-C does not end this wait, because the wrapped queue still writes to the caller's memory.
void ThrottledQueue::collect(size_t wanted) {
  const size_t missing = wanted > delayed_.size() ? wanted - delayed_.size() : 0;
  const size_t count = inner_->reap(reaped_, missing);
  for (size_t i = 0; i < count; ++i) {
    Completion& done = reaped_[i];
    Flight flight = flights_.take(done);
    // If a whole object is read without a length hint, its due time is computed only here, because its size
    // was not known before.
    if (flight.call.bytes == 0 && done.bytes.ok())
      flight.due = pace_.read_bucket.pass(*done.bytes, flight.submitted);
    delayed_.push_back({flight.due, std::move(done)});
    std::push_heap(delayed_.begin(), delayed_.end(), due_later);
  }
}

size_t ThrottledQueue::reap(std::span<Completion> out, size_t at_least) {
  const size_t wanted = std::min({at_least, in_flight(), out.size()});
  collect(wanted);
  size_t count = 0;
  while (count < out.size() && !delayed_.empty()) {
    const Time due = delayed_.front().due;
    if (count >= wanted && due > Clock::now()) break;
    // After Ctrl-C the completion is returned before it is due, since its bytes have arrived. Its time
    // becomes Time::min(), which keeps the order of the heap, because it is the first entry.
    if (!Pace::wait(pace_.read_bucket, due)) delayed_.front().due = Time::min();
    std::pop_heap(delayed_.begin(), delayed_.end(), due_later);
    out[count++] = std::move(delayed_.back().completion);
    delayed_.pop_back();
  }
  return count;
}

}  // namespace

// add_lateness(), take_lateness() and pass() need no lock. Any thread may call them. Their atomic operations
// are relaxed, because no other memory depends on free_at_ns_ and lateness_ns_. If another thread changes a
// value between its load and the exchange, the loop computes again. So no time is lost, and none is counted
// twice.
void TokenBucket::add_lateness(Time due, Time now) {
  if (latency_ns_ == 0) return;  // without a latency, pass() lets an idle pipe save up 10 ms instead
  constexpr int64_t kMaxLatenessNs = std::chrono::nanoseconds(kBurst).count();
  const int64_t added_ns = std::max<int64_t>(std::chrono::nanoseconds(now - due).count(), 0);
  int64_t lateness_ns = lateness_ns_.load(std::memory_order_relaxed);
  while (!lateness_ns_.compare_exchange_weak(
      lateness_ns, std::min(lateness_ns + std::min(added_ns, kMaxLatenessNs), kMaxLatenessNs),
      std::memory_order_relaxed))
    continue;
}

int64_t TokenBucket::take_lateness(int64_t max_ns) {
  int64_t lateness_ns = lateness_ns_.load(std::memory_order_relaxed);
  int64_t taken_ns = 0;
  do {
    taken_ns = std::min(lateness_ns, max_ns);
  } while (
      !lateness_ns_.compare_exchange_weak(lateness_ns, lateness_ns - taken_ns, std::memory_order_relaxed));
  return taken_ns;
}

TokenBucket::Time TokenBucket::pass(uint64_t bytes, Time now) {
  const Time earliest = now + std::chrono::nanoseconds(latency_ns_);
  if (bytes_per_s_ == 0 || bytes == 0) return earliest;
  constexpr double kNsPerS = 1e9;
  constexpr double kMaxDurationNs = 1e18;  // 30 years: a much longer time in ns would overflow 64 bits
  const double ns = std::min(double(bytes) * kNsPerS / double(bytes_per_s_), kMaxDurationNs);
  const auto duration_ns = int64_t(std::llround(ns));
  const auto now_ns = std::chrono::nanoseconds(now.time_since_epoch()).count();
  int64_t free_at_ns = free_at_ns_.load(std::memory_order_relaxed);
  const int64_t burst_ns = std::chrono::nanoseconds(kBurst).count();
  // free_at_ns is compared before it is subtracted: it starts at INT64_MIN, and now_ns - INT64_MIN would
  // overflow.
  const int64_t idle_ns =
      free_at_ns < now_ns - burst_ns ? burst_ns : std::max<int64_t>(now_ns - free_at_ns, 0);
  // take_lateness() is called before the loop, because a second try of the loop must not take lateness twice.
  const int64_t earliest_start_ns =
      now_ns + latency_ns_ - (latency_ns_ == 0 ? burst_ns : take_lateness(idle_ns));
  const int64_t latest_ns = now_ns + int64_t(kMaxDurationNs);
  int64_t new_free_at_ns = 0;
  do {
    new_free_at_ns = std::min(std::max(free_at_ns, earliest_start_ns) + duration_ns, latest_ns);
  } while (!free_at_ns_.compare_exchange_weak(free_at_ns, new_free_at_ns, std::memory_order_relaxed));
  return std::max(earliest, Time(std::chrono::nanoseconds(new_free_at_ns)));
}

Throttling Throttling::from_options(const Options& options) {
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
