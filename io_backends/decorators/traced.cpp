// Threads: any thread calls the back end, its Readers and its Namespace. One thread at a time calls a Writer
// or a Queue. Each call does the wrapped call first, without a lock, and then notes it in Times.
// Locks: Times::mutex_ (take, all), then a Shard::mutex (note, take), always in this order. None is held
// while the wrapped back end works, so a slow call delays no other.
// Memory: note() may allocate, for the first call of a kind and for each call that a trace keeps. Where that
// fails in a destructor, the process ends.
// Ctrl-C: nothing here looks for a signal. A call that it ends returns `interrupted` and counts as an error.
// Crash: the times are lost. The trace file exists and is empty: it is written when the back end dies.
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

// Any thread, without a lock. A number is never used again, so two threads never share a row of the trace.
// They share a shard only after more than kShards threads have called.
std::uint32_t thread_number() {
  static std::atomic<std::uint32_t> next{0};
  thread_local const std::uint32_t number = next.fetch_add(1, std::memory_order_relaxed);
  return number;
}

// One call that has ended. `object` and `error` belong to the caller of note().
struct Ended {
  TimedCall call{};
  Time started;
  std::string_view object;
  std::uint64_t offset = 0;
  std::uint64_t bytes = 0;  // what it moved, had it not failed
  const Error* error = nullptr;
  std::uint32_t place = 0;  // in a queue, from 1; 0: a blocking call
};

// The counts of one traced back end. All of its parts note their calls here.
class Times final : public TimedCalls {
 public:
  explicit Times(std::optional<TraceFile> file) : file_(std::move(file)) {}
  // Without locks: by contract the Readers, Writers and Queues that note calls are gone.
  ~Times() override {
    if (!file_) return;
    std::vector<const CallTrace*> traces;
    for (const Shard& shard : shards_) traces.push_back(&shard.trace);
    const std::uint64_t seen = seen_.load();
    const auto written = file_->write(traces, seen - std::min(seen, kMostTraced));
    if (!written.ok()) warn(written.error().message());
  }

  // After each call, on the thread that made it. Takes the lock of this thread's shard, which another thread
  // holds only in take() or if both share the shard.
  void note(const Ended& ended) {
    // The clock first: the wait for the lock is not the call's time.
    const auto took = Clock::now() - ended.started;
    const auto ns = std::max<std::int64_t>(std::chrono::nanoseconds(took).count(), 0);
    const std::uint64_t moved = ended.error == nullptr ? ended.bytes : 0;
    const std::uint32_t thread = thread_number();
    Shard& shard = shards_[thread % kShards];
    const std::lock_guard lock(shard.mutex);
    CallTimes& times = shard.times[ended.call];
    times.ns.add(static_cast<std::uint64_t>(ns));
    times.bytes += moved;
    times.errors += ended.error == nullptr ? 0 : 1;
    // Without a trace no thread touches seen_, the only cache line that all share. It only counts, hence
    // relaxed.
    if (!file_ || seen_.fetch_add(1, std::memory_order_relaxed) >= kMostTraced) return;
    TracedCall call;
    call.started_ns = std::chrono::nanoseconds(ended.started - started_).count();
    call.took_ns = ns;
    call.offset = ended.offset;
    call.bytes = moved;
    call.lane = trace_lane(thread, ended.place);
    call.call = static_cast<std::uint8_t>(ended.call);
    if (ended.error != nullptr)
      call.errc = static_cast<std::uint8_t>(static_cast<int>(ended.error->code) + 1);
    shard.trace.add(call, ended.object);
  }

  // Does `what` without a lock, then notes it as a call that moved `bytes`.
  template <class What>
  auto timed(TimedCall call, std::string_view object, What what, std::uint64_t offset = 0,
             std::uint64_t bytes = 0) -> decltype(what()) {
    const Time started = Clock::now();
    auto result = what();
    note({.call = call,
          .started = started,
          .object = object,
          .offset = offset,
          .bytes = bytes,
          .error = error_of(result)});
    return result;
  }
  template <class T>
  static const Error* error_of(const Result<T>& result) {
    return result.ok() ? nullptr : &result.error();
  }

  // The thread that runs a repeat, before and after it. Reads one shard after the other, so a call that ends
  // meanwhile is in this result or in the next one, never in both.
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
  // When a record is written. take() has released mutex_ by the time it is locked here; it is not recursive.
  // What was taken goes to untaken_, so that the next take() still returns it.
  TimesByCall all() override {
    TimesByCall taken = take();
    const std::lock_guard lock(mutex_);
    merge(untaken_, taken);
    return before_;
  }

 private:
  struct alignas(64) Shard {  // a cache line of its own: neighbours do not slow each other down
    std::mutex mutex;
    TimesByCall times;
    CallTrace trace;
  };

  std::array<Shard, kShards> shards_;
  const Time started_ = Clock::now();
  std::atomic<std::uint64_t> seen_{0};
  std::optional<TraceFile> file_;
  std::mutex mutex_;
  TimesByCall before_;   // all that the shards gave
  TimesByCall untaken_;  // of that, what take() has not given yet
};

class TracedReader final : public ReaderWrapper {
 public:
  TracedReader(std::unique_ptr<Reader> inner, std::string_view name, Times& times)
      : ReaderWrapper(std::move(inner)), name_(name), times_(times) {}
  // Any thread, the last one that uses the Reader. close() here and not by the base's destructor, so that the
  // time of closing is known when it is noted.
  ~TracedReader() override {
    const Time started = Clock::now();
    close();
    times_.note({.call = TimedCall::close, .started = started, .object = name_});
  }
  TracedReader(const TracedReader&) = delete;
  TracedReader& operator=(const TracedReader&) = delete;

  const std::string& name() const { return name_; }

  Result<std::uint64_t> size() override {
    return times_.timed(TimedCall::stat, name_, [&] { return inner().size(); });
  }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return times_.timed(
        TimedCall::read, name_, [&] { return inner().read_at(offset, out); }, offset, out.size());
  }
  Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length) override {
    return times_.timed(
        TimedCall::read, name_, [&] { return inner().view(offset, length); }, offset, length);
  }
  Result<void> read_at_all(std::uint64_t offset, std::span<std::byte> out) override {
    return times_.timed(
        TimedCall::read, name_, [&] { return inner().read_at_all(offset, out); }, offset, out.size());
  }

 private:
  const std::string name_;
  Times& times_;
};

class TracedWriter final : public WriterWrapper {
 public:
  TracedWriter(std::unique_ptr<Writer> inner, std::string_view name, Times& times)
      : WriterWrapper(std::move(inner)), name_(name), times_(times) {}
  // As ~TracedReader(). An unpublished Writer removes what it wrote in close(), which is the time noted.
  ~TracedWriter() override {
    const Time started = Clock::now();
    close();
    if (!published_) times_.note({.call = TimedCall::discard, .started = started, .object = name_});
  }
  TracedWriter(const TracedWriter&) = delete;
  TracedWriter& operator=(const TracedWriter&) = delete;

  Result<void> append(std::span<const std::byte> bytes) override {
    return appended(bytes.size(), [&] { return inner().append(bytes); });
  }
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override {
    std::uint64_t bytes = 0;
    for (const auto& piece : pieces) bytes += piece.size();
    return appended(bytes, [&] { return inner().append(pieces); });
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return times_.timed(
        TimedCall::write, name_, [&] { return inner().write_at(offset, bytes); }, offset, bytes.size());
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    auto done = times_.timed(TimedCall::publish, name_, [&] { return inner().publish(wanted, if_exists); });
    published_ = published_ || done.ok();
    return done;
  }

 private:
  template <class What>
  Result<void> appended(std::uint64_t bytes, What what) {
    auto done = times_.timed(TimedCall::write, name_, what, position_, bytes);
    if (done.ok()) position_ += bytes;
    return done;
  }

  const std::string name_;
  Times& times_;
  std::uint64_t position_ = 0;
  bool published_ = false;
};

class TracedNamespace final : public NamespaceWrapper {
 public:
  TracedNamespace(Namespace& inner, Times& times) : NamespaceWrapper(inner), times_(times) {}

  Result<void> list(std::string_view folder, const std::function<bool(const Entry&)>& visit) override {
    return times_.timed(TimedCall::list, folder, [&] { return inner().list(folder, visit); });
  }
  Result<Entry> stat(std::string_view name) override {
    return times_.timed(TimedCall::stat, name, [&] { return inner().stat(name); });
  }
  Result<void> make_folders(std::string_view folder) override {
    return times_.timed(TimedCall::make_folders, folder, [&] { return inner().make_folders(folder); });
  }
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    return times_.timed(TimedCall::rename, from, [&] { return inner().rename_noreplace(from, to); });
  }
  Result<void> remove(std::string_view name) override {
    return times_.timed(TimedCall::remove, name, [&] { return inner().remove(name); });
  }
  Result<void> sync_dir(std::string_view folder) override {
    return times_.timed(TimedCall::sync_folder, folder, [&] { return inner().sync_dir(folder); });
  }
  Result<std::unique_ptr<Lock>> lock(std::string_view name) override {
    return times_.timed(TimedCall::lock, name, [&] { return inner().lock(name); });
  }

 private:
  Times& times_;
};

// One thread at a time, and no lock of its own. After the constructor it allocates nothing, but note() may.
class TracedQueue final : public Queue {
 public:
  TracedQueue(std::unique_ptr<Queue> inner, std::size_t depth, Times& times)
      : inner_(std::move(inner)), depth_(depth), times_(times), flights_(depth) {
    forwarded_.reserve(depth);
  }

  void lend(std::span<std::byte> memory) override { inner_->lend(memory); }

  std::size_t submit(std::span<const Operation> operations, Start start) override {
    forwarded_.clear();
    // Before the submit: a wrapped queue may do all of the work in there.
    const Time now = Clock::now();
    for (const Operation& operation : operations.first(std::min(operations.size(), depth_ - in_flight())))
      forwarded_.push_back(unwrapped(operation, flights_.add(flight(operation, now))));
    const std::size_t taken = inner_->submit(forwarded_, start);
    for (const Operation& refused : std::span(forwarded_).subspan(taken))
      flights_.remove(static_cast<std::size_t>(refused.tag));
    return taken;
  }

  std::size_t reap(std::span<Completion> out, std::size_t at_least) override {
    const std::size_t count = inner_->reap(out, at_least);
    for (Completion& done : out.first(count)) {
      const auto slot = static_cast<std::size_t>(done.tag);
      Flight& flight = flights_.at(slot);
      flight.ended.bytes = done.bytes.ok() ? *done.bytes : 0;
      flight.ended.error = Times::error_of(done.bytes);
      flight.ended.place = static_cast<std::uint32_t>(slot + 1);
      // The slot is free only after the last use of `flight`, and of the caller's name in it.
      times_.note(flight.ended);
      done.tag = flight.tag;
      flights_.remove(slot);
    }
    return count;
  }

  std::size_t in_flight() const override { return inner_->in_flight(); }

 private:
  struct Flight {
    std::uint64_t tag = 0;
    Ended ended;  // what is known at submit(); its name is the caller's until the operation is reaped
  };

  static Flight flight(const Operation& operation, Time now) {
    if (const auto* object = std::get_if<ReadObject>(&operation.what))
      return {operation.tag, {.call = TimedCall::read_object, .started = now, .object = object->name}};
    const auto& read = std::get<ReadAt>(operation.what);
    const std::string_view name = static_cast<TracedReader*>(read.reader)->name();
    return {operation.tag, {.call = TimedCall::read, .started = now, .object = name, .offset = read.offset}};
  }

  // Destroyed with operations in flight, the wrapped queue waits for them or cuts them off. They are not
  // noted.
  const std::unique_ptr<Queue> inner_;
  const std::size_t depth_;
  Times& times_;
  FlightTable<Flight> flights_;
  std::vector<Operation> forwarded_;
};

class TracedBackend final : public BackendWrapper {
 public:
  TracedBackend(std::unique_ptr<Backend> backend, std::optional<TraceFile> file)
      : BackendWrapper(std::move(backend), false), times_(std::move(file)), names_(inner().names(), times_) {}

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    auto reader = times_.timed(TimedCall::open, name, [&] { return inner().open(name); });
    if (!reader) return std::move(reader).error();
    return std::make_unique<TracedReader>(*std::move(reader), name, times_);
  }
  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override {
    auto writer = times_.timed(TimedCall::create, name, [&] { return inner().create(name, bytes_hint); });
    if (!writer) return std::move(writer).error();
    return std::make_unique<TracedWriter>(*std::move(writer), name, times_);
  }
  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override {
    const Time started = Clock::now();
    auto bytes = inner().read_object(name, length_hint, out);
    times_.note({.call = TimedCall::read_object,
                 .started = started,
                 .object = name,
                 .bytes = bytes.ok() ? *bytes : 0,
                 .error = Times::error_of(bytes)});
    return bytes;
  }
  Result<std::unique_ptr<Queue>> queue(std::size_t depth) override {
    PENSTOCK_ASSIGN(auto queue, inner().queue(depth));
    return std::make_unique<TracedQueue>(std::move(queue), depth, times_);
  }
  Namespace& names() override { return names_; }

  TimedCalls& times() { return times_; }

 private:
  Times times_;  // its destructor writes the trace, before the wrapped back end ends
  TracedNamespace names_;
};

}  // namespace

std::string_view timed_call_name(TimedCall call) {
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
  return std::make_unique<TracedBackend>(std::move(inner), std::move(file));
}

TimedCalls* timed_calls(Backend& backend) {
  auto* const traced = dynamic_cast<TracedBackend*>(&backend);
  return traced == nullptr ? nullptr : &traced->times();
}

}  // namespace penstock
