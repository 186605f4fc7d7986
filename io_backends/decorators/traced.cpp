// Threads: any thread calls the back end, its Readers and its Namespace. One thread at a time calls a Writer
// or a Queue. Each call first makes the wrapped call without a lock, and then passes the call to
// CallRecorder::note().
// Locks: CallRecorder::mutex_ (take_new_calls, totals), then a Shard::mutex (note, take_new_calls), always in
// this order. No lock is held during a call of the wrapped back end, so a slow call does not delay others.
// Memory: note() may allocate, for the first call of a kind and for each call that a trace keeps. If that
// fails in a destructor, the process ends.
// Ctrl-C: this file does not check for a signal. A call that a signal ends returns `interrupted` and counts
// as an error.
// Crash: the times are lost. The trace file exists and is empty, because it is written when the back end is
// destroyed.
#include "io_backends/decorators/traced.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <mutex>
#include <optional>
#include <vector>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/decorators/call_trace.hpp"
#include "io_backends/decorators/wrapper.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
using Time = Clock::time_point;

constexpr size_t kShards = 64;

// Returns the number of the calling thread, counted from 0. Lock-free. No two threads ever get the same
// number, so each has its own row in the trace. Two threads share a shard only if more than kShards threads
// have called this.
uint32_t thread_number() {
  static std::atomic<uint32_t> next_number{0};
  thread_local const uint32_t number = next_number.fetch_add(1, std::memory_order_relaxed);
  return number;
}

// The counts of one traced back end. All its Readers, Writers and Queues report their calls by note().
class CallRecorder final : public TimedCalls {
 public:
  explicit CallRecorder(std::optional<TraceFile> file) : file_(std::move(file)) {}
  // Writes the trace file. It needs no locks, because all callers of note() must have been destroyed before:
  // the traced back end and its Readers, Writers and Queues.
  ~CallRecorder() override {
    if (!file_) return;
    std::vector<const CallTrace*> traces;
    for (const Shard& shard : shards_) traces.push_back(&shard.trace);
    const uint64_t calls_seen = calls_seen_.load();
    const auto written = file_->write(traces, calls_seen - std::min(calls_seen, kMaxCallsInTrace));
    if (!written.ok()) warn(written.error().message());
  }

  // The hook (wrapper.hpp) for each blocking call: makes the call without a lock, then reports it by note().
  template <class Inner>
  auto around(const BackendCall& call, Inner inner) -> decltype(inner()) {
    const Time started = Clock::now();
    auto result = inner();
    BackendCall made_call = call;
    if (result.ok()) made_call.bytes = bytes_moved(call, result);
    note(made_call, started, error_of(result));
    return result;
  }

  // Adds a finished call to the counts, and to the trace if there is one. Runs on the thread that made the
  // call. `call.bytes`: the bytes that the call moved if it succeeded. `slot`: 0 for a blocking call, else
  // the slot in the queue (from 1).
  // Lock: takes the lock of this thread's shard. Only take_new_calls() and other threads of the same shard
  // take that lock, too.
  void note(const BackendCall& call, Time started, const Error* error, uint32_t slot = 0) {
    // The clock is read before the lock is taken: a wait for the lock is not part of the call's time.
    const auto duration = Clock::now() - started;
    const auto ns = std::max<int64_t>(std::chrono::nanoseconds(duration).count(), 0);
    const uint64_t moved = error == nullptr ? call.bytes : 0;
    const CallKind kind = call.kind == CallKind::view   ? CallKind::read
                          : call.kind == CallKind::size ? CallKind::stat
                                                        : call.kind;
    const uint32_t thread = thread_number();
    Shard& shard = shards_[thread % kShards];
    const std::lock_guard lock(shard.mutex);
    CallTimes& times = shard.times[kind];
    times.ns.add(uint64_t(ns));
    times.bytes += moved;
    times.errors += error == nullptr ? 0 : 1;
    // Without a trace, calls_seen_ is not changed: it is the only cache line that all threads share, so each
    // change would slow them down. A relaxed add is enough, because no other memory depends on this count.
    if (!file_ || calls_seen_.fetch_add(1, std::memory_order_relaxed) >= kMaxCallsInTrace) return;
    TracedCall traced;
    traced.started_ns = std::chrono::nanoseconds(started - trace_begin_).count();
    traced.duration_ns = ns;
    traced.offset = call.offset;
    traced.bytes = moved;
    traced.lane = trace_lane(thread, slot);
    traced.kind = uint8_t(kind);
    if (error != nullptr) traced.errc = uint8_t(int(error->code) + 1);
    shard.trace.add(traced, call.object);
  }

  template <class T>
  static const Error* error_of(const Result<T>& result) {
    return result.ok() ? nullptr : &result.error();
  }

  // Returns the calls since the last take_new_calls(), and empties one shard after the other. So a call that
  // ends meanwhile is in this result or in the next one, never in both. The thread that runs a repeat calls
  // this before and after the repeat.
  TimesByCall take_new_calls() override {
    const std::lock_guard lock(mutex_);
    TimesByCall taken;
    for (Shard& shard : shards_) {
      const std::lock_guard guard(shard.mutex);
      merge(taken, shard.times);
      shard.times.clear();
    }
    merge(taken_total_, taken);
    merge(taken, calls_not_taken_);
    calls_not_taken_.clear();
    return taken;
  }
  // Returns all calls since the beginning. It gets the latest calls from take_new_calls(), and keeps them in
  // calls_not_taken_ so that the next take_new_calls() of a caller still returns them. It locks mutex_ only
  // after take_new_calls() has released it, because mutex_ is not recursive.
  TimesByCall totals() override {
    TimesByCall taken = take_new_calls();
    const std::lock_guard lock(mutex_);
    merge(calls_not_taken_, taken);
    return taken_total_;
  }

 private:
  // each shard has its own cache line, so that threads do not slow each other down
  struct alignas(64) Shard {
    std::mutex mutex;
    TimesByCall times;
    CallTrace trace;
  };

  std::array<Shard, kShards> shards_;
  const Time trace_begin_ = Clock::now();
  std::atomic<uint64_t> calls_seen_{0};
  std::optional<TraceFile> file_;
  std::mutex mutex_;
  TimesByCall taken_total_;      // all calls that take_new_calls() has collected from the shards
  TimesByCall calls_not_taken_;  // calls in taken_total_ that the next take_new_calls() must still return
};

class TracedReader final : public DecoratedReader<CallRecorder> {
 public:
  using DecoratedReader::DecoratedReader;
  // Measures the time that it takes to close the Reader. Without this, the destructor of the base class would
  // close it unmeasured. Runs on the thread that destroys the Reader.
  ~TracedReader() override {
    const Time started = Clock::now();
    close();
    hook().note({CallKind::close, name()}, started, nullptr);
  }
  TracedReader(const TracedReader&) = delete;
  TracedReader& operator=(const TracedReader&) = delete;
};

class TracedWriter final : public DecoratedWriter<CallRecorder> {
 public:
  using DecoratedWriter::DecoratedWriter;
  // Measures the time that it takes to close an unpublished Writer, which removes its bytes.
  ~TracedWriter() override {
    const Time started = Clock::now();
    close();
    if (!published_) hook().note({CallKind::discard, name()}, started, nullptr);
  }
  TracedWriter(const TracedWriter&) = delete;
  TracedWriter& operator=(const TracedWriter&) = delete;

  Result<void> publish(Durability wanted, IfExists if_exists) override {
    auto done = DecoratedWriter::publish(wanted, if_exists);
    published_ = published_ || done.ok();
    return done;
  }

 private:
  bool published_ = false;
};

// A queue that measures each operation from submit() until reap() returns it. It has no lock, so only one
// thread at a time may call it. After the constructor only note() may allocate.
class TracedQueue final : public Queue {
 public:
  TracedQueue(std::unique_ptr<Queue> inner, size_t depth, CallRecorder& times)
      : inner_(std::move(inner)), depth_(depth), times_(times), flights_(depth) {
    forwarded_.reserve(depth);
  }

  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }

  size_t submit(std::span<const Operation> operations, Start start) override {
    forwarded_.clear();
    // The clock is read before submit(), because a wrapped queue may do all of the work in submit().
    const Time now = Clock::now();
    for (const Operation& operation : operations.first(std::min(operations.size(), depth_ - in_flight())))
      forwarded_.push_back(
          flights_.add(operation, {.call = FlightTable<CallRecorder>::call_of(operation), .submitted = now}));
    const size_t taken = inner_->submit(forwarded_, start);
    for (const Operation& refused : std::span(forwarded_).subspan(taken))
      flights_.remove(size_t(refused.tag));
    return taken;
  }

  size_t reap(std::span<Completion> out, size_t at_least) override {
    const size_t count = inner_->reap(out, at_least);
    for (Completion& done : out.first(count)) {
      const auto slot = uint32_t(done.tag + 1);
      Flight flight = flights_.take(done);
      if (done.bytes.ok()) flight.call.bytes = *done.bytes;
      times_.note(flight.call, flight.submitted, CallRecorder::error_of(done.bytes), slot);
    }
    return count;
  }

  size_t in_flight() const override { return inner_->in_flight(); }

 private:
  // If operations are in flight at destruction, the wrapped queue waits for them or cancels them. Such
  // operations are not counted.
  const std::unique_ptr<Queue> inner_;
  const size_t depth_;
  CallRecorder& times_;
  FlightTable<CallRecorder> flights_;
  std::vector<Operation> forwarded_;
};

using TracedBackend = DecoratedBackend<CallRecorder, TracedQueue, TracedWriter, TracedReader>;

}  // namespace

std::string_view timed_call_name(CallKind call) {
  constexpr std::string_view kNames[] = {"open",         "read",    "close",   "read_object", "create",
                                         "write",        "publish", "discard", "list",        "stat",
                                         "make_folders", "rename",  "remove",  "sync_folder", "lock"};
  return kNames[size_t(call)];
}

void CallTimes::merge(const CallTimes& other) {
  ns.merge(other.ns);
  bytes += other.bytes;
  errors += other.errors;
}

void merge(TimesByCall& into, const TimesByCall& from) {
  for (const auto& [call, times] : from) into[call].merge(times);
}

Result<std::unique_ptr<Backend>> traced(std::unique_ptr<Backend> inner, const std::string& trace_file) {
  std::optional<TraceFile> file;
  if (!trace_file.empty()) {
    PENSTOCK_ASSIGN(file, TraceFile::create(trace_file));
  }
  return std::make_unique<TracedBackend>(std::move(inner), false, std::move(file));
}

TimedCalls* timed_calls(Backend& backend) {
  auto* const traced = dynamic_cast<TracedBackend*>(&backend);
  return traced == nullptr ? nullptr : &traced->hook();
}

TimesByCall take_call_times(Backend& backend) {
  TimedCalls* const calls = timed_calls(backend);
  return calls == nullptr ? TimesByCall{} : calls->take_new_calls();
}

}  // namespace penstock
