// Threads: any thread calls the back end, its Readers and its Namespace. One thread at a time calls a Writer
// or a Queue. All of them share one Pace, whose two buckets are atomics. There is no lock here.
// Memory: after a Reader, Writer or Queue is made, only errors allocate here.
// Ctrl-C: every sleep ends within 50 ms with `interrupted`. A call with a latency that starts after the
// signal fails at once, also one that cleans up, unless its thread has a WorkOn.
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
struct Pace {
  explicit Pace(const Throttling& throttling)
      : read(throttling.read_bytes_per_s, throttling.latency),
        write(throttling.write_bytes_per_s, throttling.latency),
        latency(throttling.latency) {}

  // Does `call`, which moves `bytes` through `pipe`, and returns when it is due. pass() comes before the
  // call, so that the time of the call is part of the wait. The bytes are moved by then: after an interrupt
  // in the wait the caller gets an error although they are.
  template <class Call>
  auto moved(TokenBucket& pipe, std::uint64_t bytes, Call call) -> decltype(call()) {
    const Time due = pipe.pass(bytes, Clock::now());
    auto result = call();
    if (result.ok()) PENSTOCK_TRY(wait(pipe, due));
    return result;
  }
  // Waits before the call: if an interrupt ends the wait, no name has changed.
  template <class Call>
  auto called(Call call) -> decltype(call()) {
    PENSTOCK_TRY(sleep_until(Clock::now() + latency));
    return call();
  }
  static Result<void> wait(TokenBucket& pipe, Time due) {
    if (due <= Clock::now()) return success();
    PENSTOCK_TRY(sleep_until(due));
    pipe.woke(due, Clock::now());
    return success();
  }

  TokenBucket read;
  TokenBucket write;
  const std::chrono::nanoseconds latency;
};

class ThrottledReader final : public ReaderWrapper {
 public:
  ThrottledReader(std::unique_ptr<Reader> inner, Pace& pace) : ReaderWrapper(std::move(inner)), pace_(pace) {}

  Result<std::uint64_t> size() override {
    return pace_.called([&] { return inner().size(); });
  }
  Result<void> read_at(std::uint64_t offset, std::span<std::byte> out) override {
    return pace_.moved(pace_.read, out.size(), [&] { return inner().read_at(offset, out); });
  }
  Result<std::span<const std::byte>> view(std::uint64_t offset, std::uint64_t length) override {
    return pace_.moved(pace_.read, length, [&] { return inner().view(offset, length); });
  }
  Result<void> read_at_all(std::uint64_t offset, std::span<std::byte> out) override {
    return pace_.moved(pace_.read, out.size(), [&] { return inner().read_at_all(offset, out); });
  }

 private:
  Pace& pace_;
};

class ThrottledWriter final : public WriterWrapper {
 public:
  ThrottledWriter(std::unique_ptr<Writer> inner, Pace& pace) : WriterWrapper(std::move(inner)), pace_(pace) {}

  Result<void> append(std::span<const std::byte> bytes) override {
    return pace_.moved(pace_.write, bytes.size(), [&] { return inner().append(bytes); });
  }
  Result<void> append(std::span<const std::span<const std::byte>> pieces) override {
    std::uint64_t bytes = 0;
    for (const auto& piece : pieces) bytes += piece.size();
    return pace_.moved(pace_.write, bytes, [&] { return inner().append(pieces); });
  }
  Result<void> write_at(std::uint64_t offset, std::span<const std::byte> bytes) override {
    return pace_.moved(pace_.write, bytes.size(), [&] { return inner().write_at(offset, bytes); });
  }
  Result<void> publish(Durability wanted, IfExists if_exists) override {
    return pace_.called([&] { return inner().publish(wanted, if_exists); });
  }

 private:
  Pace& pace_;
};

class ThrottledNamespace final : public NamespaceWrapper {
 public:
  ThrottledNamespace(Namespace& inner, Pace& pace) : NamespaceWrapper(inner), pace_(pace) {}

  Result<void> list(std::string_view folder, const std::function<bool(const Entry&)>& visit) override {
    return pace_.called([&] { return inner().list(folder, visit); });
  }
  Result<Entry> stat(std::string_view name) override {
    return pace_.called([&] { return inner().stat(name); });
  }
  Result<void> make_folders(std::string_view folder) override {
    return pace_.called([&] { return inner().make_folders(folder); });
  }
  Result<void> rename_noreplace(std::string_view from, std::string_view to) override {
    return pace_.called([&] { return inner().rename_noreplace(from, to); });
  }
  Result<void> remove(std::string_view name) override {
    return pace_.called([&] { return inner().remove(name); });
  }
  Result<void> sync_dir(std::string_view folder) override {
    return pace_.called([&] { return inner().sync_dir(folder); });
  }
  Result<std::unique_ptr<Lock>> lock(std::string_view name) override {
    return pace_.called([&] { return inner().lock(name); });
  }

 private:
  Pace& pace_;
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

  void lend(std::span<std::byte> memory) override { inner_->lend(memory); }
  std::size_t submit(std::span<const Operation> operations, Start start) override;
  std::size_t reap(std::span<Completion> out, std::size_t at_least) override;
  std::size_t in_flight() const override { return flights_.in_flight() + held_.size(); }

 private:
  struct Flight {
    std::uint64_t tag = 0;
    bool paid = false;  // its bytes have gone through the bucket
    Time submitted;
    Time due;
  };
  struct Held {
    Time due;
    Completion completion;
  };
  static bool later(const Held& a, const Held& b) { return a.due > b.due; }

  void hold(std::size_t wanted);

  // Destroyed with operations in flight, the wrapped queue waits for them or cuts them off. It does not wait
  // until they are due.
  const std::unique_ptr<Queue> inner_;
  Pace& pace_;
  FlightTable<Flight> flights_;
  std::vector<Completion> scratch_;
  std::vector<Operation> forwarded_;
  std::vector<Held> held_;  // a heap, the earliest in front
};

// Does not sleep. Each operation gets the moment when it is due here, so that depth hides latency.
std::size_t ThrottledQueue::submit(std::span<const Operation> operations, Start start) {
  const Time now = Clock::now();
  operations = operations.first(std::min(operations.size(), scratch_.size() - in_flight()));
  forwarded_.clear();
  for (const Operation& operation : operations) {
    const auto* object = std::get_if<ReadObject>(&operation.what);
    const std::uint64_t bytes =
        object != nullptr ? object->length_hint : std::get<ReadAt>(operation.what).out.size();
    const bool paid = bytes != 0;
    forwarded_.push_back(
        unwrapped(operation, flights_.add({operation.tag, paid, now, pace_.read.pass(bytes, now)})));
  }
  std::span<const Operation> rest(forwarded_);
  // The wrapped queue is as deep as this one, so it has room for all.
  while (!rest.empty()) rest = rest.subspan(inner_->submit(rest, start));
  return operations.size();
}

// Takes what the wrapped queue has done. Waits until `wanted` completions are held, due or not. Ctrl-C does
// not end this wait: the wrapped queue still writes to the caller's memory.
void ThrottledQueue::hold(std::size_t wanted) {
  const std::size_t missing = wanted > held_.size() ? wanted - held_.size() : 0;
  const std::size_t count = inner_->reap(scratch_, missing);
  for (std::size_t i = 0; i < count; ++i) {
    Completion& done = scratch_[i];
    const auto slot = static_cast<std::size_t>(done.tag);
    Flight& flight = flights_.at(slot);
    // Without a length hint the size is known only now.
    if (!flight.paid && done.bytes.ok()) flight.due = pace_.read.pass(*done.bytes, flight.submitted);
    done.tag = flight.tag;
    held_.push_back({flight.due, std::move(done)});
    std::push_heap(held_.begin(), held_.end(), later);
    flights_.remove(slot);
  }
}

std::size_t ThrottledQueue::reap(std::span<Completion> out, std::size_t at_least) {
  const std::size_t wanted = std::min({at_least, in_flight(), out.size()});
  hold(wanted);
  std::size_t count = 0;
  while (count < out.size() && !held_.empty()) {
    const Time due = held_.front().due;
    if (count >= wanted && due > Clock::now()) break;
    // After Ctrl-C it returns the completion early: the bytes are there. Only the first entry may get an
    // earlier time, since any other would break the order of the heap.
    if (!Pace::wait(pace_.read, due)) held_.front().due = Time::min();
    std::pop_heap(held_.begin(), held_.end(), later);
    out[count++] = std::move(held_.back().completion);
    held_.pop_back();
  }
  return count;
}

class ThrottledBackend final : public BackendWrapper {
 public:
  ThrottledBackend(std::unique_ptr<Backend> backend, const Throttling& throttling)
      : BackendWrapper(std::move(backend)), pace_(throttling), names_(inner().names(), pace_) {}

  Result<std::unique_ptr<Reader>> open(std::string_view name) override {
    return pace_.called([&]() -> Result<std::unique_ptr<Reader>> {
      PENSTOCK_ASSIGN(auto reader, inner().open(name));
      return std::make_unique<ThrottledReader>(std::move(reader), pace_);
    });
  }
  Result<std::unique_ptr<Writer>> create(std::string_view name, std::uint64_t bytes_hint) override {
    return pace_.called([&]() -> Result<std::unique_ptr<Writer>> {
      PENSTOCK_ASSIGN(auto writer, inner().create(name, bytes_hint));
      return std::make_unique<ThrottledWriter>(std::move(writer), pace_);
    });
  }
  Result<std::uint64_t> read_object(std::string_view name, std::uint64_t length_hint,
                                    std::span<std::byte> out) override {
    const Time begin = Clock::now();
    Time due = pace_.read.pass(length_hint, begin);
    auto bytes = inner().read_object(name, length_hint, out);
    if (!bytes) return bytes;
    if (length_hint == 0) due = pace_.read.pass(*bytes, begin);
    PENSTOCK_TRY(Pace::wait(pace_.read, due));
    return bytes;
  }
  Result<std::unique_ptr<Queue>> queue(std::size_t depth) override {
    PENSTOCK_ASSIGN(auto queue, inner().queue(depth));
    return std::make_unique<ThrottledQueue>(std::move(queue), depth, pace_);
  }
  Namespace& names() override { return names_; }

 private:
  Pace pace_;
  ThrottledNamespace names_;
};

}  // namespace

// The three functions of the bucket are called by any thread, without a lock. The two atomics guard no other
// memory, hence relaxed. Each loop repeats until no other thread has changed the value in between, so no time
// is lost and none is counted twice.
void TokenBucket::woke(Time due, Time now) {
  if (latency_ns_ == 0) return;  // then it saves up all that it is idle
  constexpr std::int64_t kMost = std::chrono::nanoseconds(kBurst).count();
  const std::int64_t more = std::max<std::int64_t>(std::chrono::nanoseconds(now - due).count(), 0);
  std::int64_t late = late_ns_.load(std::memory_order_relaxed);
  while (!late_ns_.compare_exchange_weak(late, std::min(late + std::min(more, kMost), kMost),
                                         std::memory_order_relaxed))
    continue;
}

std::int64_t TokenBucket::take_of_late(std::int64_t at_most) {
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
  const std::int64_t before = std::chrono::nanoseconds(kBurst).count();
  // The comparison comes first: free_at starts at INT64_MIN, and now_ns minus that would overflow.
  const std::int64_t idle = free_at < now_ns - before ? before : std::max<std::int64_t>(now_ns - free_at, 0);
  // Outside of the loop: a second try must not take lateness twice.
  const std::int64_t start = now_ns + latency_ns_ - (latency_ns_ == 0 ? before : take_of_late(idle));
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
  return std::make_unique<ThrottledBackend>(std::move(inner), throttling);
}

}  // namespace penstock
