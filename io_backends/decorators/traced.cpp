// Threads: any thread calls the back end, its Readers and its Namespace. One thread at a time calls a Writer
// or a Queue. Each call does the wrapped call first, without a lock, and then notes it in Times.
// Locks: Times::mutex_ (take, all), then a Shard::mutex (note, take), always in this order. No lock is held
// during a call of the wrapped back end, so a slow call does not delay others.
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

constexpr std::size_t kShards = 64;

// Called by any thread, without a lock. A number is never used again, so two threads never share a row of the
// trace. They share a shard only after more than kShards threads have called.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next{0};
  thread_local const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

// The counts of one traced back end. All its Readers, Writers and Queues note their calls here.
class Times final : public TimedCalls {
 public:
  explicit Times(std::optional<TraceFile> file) : file_(std::move(file)) {}
  // Without locks: the Readers, Writers and Queues that note calls must be destroyed before.
  ~Times() override {
    if (!file_) return;
    std::vector<const CallTrace*> traces;
    for (const Shard& shard : shards_) traces.push_back(&shard.trace);
    const std::uint64_t seen = seen_.load();
    const auto written = file_->write(traces, seen - std::min(seen, kMostTraced));
    if (!written.ok()) warn(written.error().message());
  }

  // Does the call without a lock, then notes it.
  template <class Inner>
  auto around(const BackendCall& call, Inner inner) -> decltype(inner()) {
    const Time started = Clock::now();
    auto result = inner();
    BackendCall ended = call;
    if (result.ok()) ended.bytes = bytes_moved(call, result);
    note(ended, started, error_of(result));
    return result;
  }

  // Called after each call, on the thread that made it. `call.bytes`: the bytes it moved if it succeeded.
  // `place`: the slot in a queue, from 1; 0: a blocking call. Takes the lock of this thread's shard. Another
  // thread holds that lock only in take(), or if both threads share the shard.
  void note(const BackendCall& call, Time started, const Error* error, std::uint32_t place = 0) {
    // Read the clock first: the wait for the lock is not part of the call's time.
    const auto took = Clock::now() - started;
    const auto ns = std::max<std::int64_t>(std::chrono::nanoseconds(took).count(), 0);
    const std::uint64_t moved = error == nullptr ? call.bytes : 0;
    const CallKind kind = call.kind == CallKind::view   ? CallKind::read
                          : call.kind == CallKind::size ? CallKind::stat
                                                        : call.kind;
    const std::uint32_t thread = thread_number();
    Shard& shard = shards_[thread % kShards];
    const std::lock_guard lock(shard.mutex);
    CallTimes& times = shard.times[kind];
    times.ns.add(static_cast<std::uint64_t>(ns));
    times.bytes += moved;
    times.errors += error == nullptr ? 0 : 1;
    // Without a trace no thread writes seen_, the only cache line that all threads share. It only counts,
    // hence relaxed.
    if (!file_ || seen_.fetch_add(1, std::memory_order_relaxed) >= kMostTraced) return;
    TracedCall traced;
    traced.started_ns = std::chrono::nanoseconds(started - started_).count();
    traced.took_ns = ns;
    traced.offset = call.offset;
    traced.bytes = moved;
    traced.lane = trace_lane(thread, place);
    traced.call = static_cast<std::uint8_t>(kind);
    if (error != nullptr) traced.errc = static_cast<std::uint8_t>(static_cast<int>(error->code) + 1);
    shard.trace.add(traced, call.object);
  }

  template <class T>
  static const Error* error_of(const Result<T>& result) {
    return result.ok() ? nullptr : &result.error();
  }

  // The thread that runs a repeat calls it before and after the repeat. It reads one shard after the other.
  // So a call that ends meanwhile is in this result or in the next one, never in both.
  TimesByCall take() override {
    const std::lock_guard lock(mutex_);
    TimesByCall taken;
    for (Shard& shard : shards_) {
      const std::lock_guard guard(shard.mutex);
      merge(taken, shard.times);
      shard.times.clear();
    }
    merge(before_, taken);
    merge(taken, untaken_);
    untaken_.clear();
    return taken;
  }
  // Called when a record is written. take() must have released mutex_ before it is locked here, because it is
  // not recursive. The calls that take() returned here go to untaken_, so that the next take() still returns
  // them.
  TimesByCall all() override {
    TimesByCall taken = take();
    const std::lock_guard lock(mutex_);
    merge(untaken_, taken);
    return before_;
  }

 private:
  struct alignas(64) Shard {  // its own cache line, so that neighbours do not slow each other down
    std::mutex mutex;
    TimesByCall times;
    CallTrace trace;
  };

  std::array<Shard, kShards> shards_;
  const Time started_ = Clock::now();
  std::atomic<std::uint64_t> seen_{0};
  std::optional<TraceFile> file_;
  std::mutex mutex_;
  TimesByCall before_;   // all calls taken from the shards
  TimesByCall untaken_;  // the calls of before_ that take() has not returned yet
};

class TracedReader final : public DecoratedReader<Times> {
 public:
  using DecoratedReader::DecoratedReader;
  // Runs on the thread that destroys the Reader. It calls close() itself instead of leaving that to the base
  // class, so that the time of closing is known when it is noted.
  ~TracedReader() override {
    const Time started = Clock::now();
    close();
    hook().note({CallKind::close, name()}, started, nullptr);
  }
  TracedReader(const TracedReader&) = delete;
  TracedReader& operator=(const TracedReader&) = delete;
};

class TracedWriter final : public DecoratedWriter<Times> {
 public:
  using DecoratedWriter::DecoratedWriter;
  // As ~TracedReader(). close() of an unpublished Writer removes its bytes, and that time is noted.
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

// One thread at a time; it has no lock. It allocates nothing after the constructor, but note() may.
class TracedQueue final : public Queue {
 public:
  TracedQueue(std::unique_ptr<Queue> inner, std::size_t depth, Times& times)
      : inner_(std::move(inner)), depth_(depth), times_(times), flights_(depth) {
    forwarded_.reserve(depth);
  }

  void register_memory(std::span<std::byte> memory) override { inner_->register_memory(memory); }

  std::size_t submit(std::span<const Operation> operations, Start start) override {
    forwarded_.clear();
    // Read the clock before submit(), because a wrapped queue may do all of the work there.
    const Time now = Clock::now();
    for (const Operation& operation : operations.first(std::min(operations.size(), depth_ - in_flight())))
      forwarded_.push_back(
          flights_.add(operation, {.call = FlightTable<Times>::call_of(operation), .submitted = now}));
    const std::size_t taken = inner_->submit(forwarded_, start);
    for (const Operation& refused : std::span(forwarded_).subspan(taken))
      flights_.remove(static_cast<std::size_t>(refused.tag));
    return taken;
  }

  std::size_t reap(std::span<Completion> out, std::size_t at_least) override {
    const std::size_t count = inner_->reap(out, at_least);
    for (Completion& done : out.first(count)) {
      const auto place = static_cast<std::uint32_t>(done.tag + 1);
      Flight flight = flights_.take(done);
      if (done.bytes.ok()) flight.call.bytes = *done.bytes;
      times_.note(flight.call, flight.submitted, Times::error_of(done.bytes), place);
    }
    return count;
  }

  std::size_t in_flight() const override { return inner_->in_flight(); }

 private:
  // If operations are in flight at destruction, the wrapped queue waits for them or cuts them off. They are
  // not noted.
  const std::unique_ptr<Queue> inner_;
  const std::size_t depth_;
  Times& times_;
  FlightTable<Times> flights_;
  std::vector<Operation> forwarded_;
};

using TracedBackend = DecoratedBackend<Times, TracedQueue, TracedWriter, TracedReader>;

}  // namespace

std::string_view timed_call_name(CallKind call) {
  constexpr std::string_view kNames[] = {"open",         "read",    "close",   "read_object", "create",
                                         "write",        "publish", "discard", "list",        "stat",
                                         "make_folders", "rename",  "remove",  "sync_folder", "lock"};
  return kNames[static_cast<std::size_t>(call)];
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
  return calls == nullptr ? TimesByCall{} : calls->take();
}

}  // namespace penstock
