// One thread of the read engine, and the state that the threads of one run share. Only read_engine.cpp
// includes this.
#pragma once

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <latch>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/sample_checks.hpp"
#include "datagen/reading/collective_order.hpp"
#include "datagen/reading/sample_order.hpp"
#include "datagen/reading/sample_reader.hpp"
#include "io_backends/backend/buffer.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {

using ReadWorkers = std::span<const std::unique_ptr<ReadWorker>>;

// What the threads of one run share. Made before they start, destroyed after they are joined.
class ReadRun {
 public:
  ReadRun(std::uint64_t samples, const ReadOptions& options, const RankShare& share, const ReadSpec& spec,
          std::uint64_t first_pass, ReadWorkers workers);

  // All workers but the first wait at the gate until all are there; false: the run was called off.
  bool wait_at_gate(const ReadWorker& one);
  void open_gate();  // waits for them, starts the clock, lets them go
  void call_off();

  // At the stonewall all workers wait. The first one adds up what they did and asks how many samples are left
  // to read. Then all go on, each as long as wear_out() is true.
  void stand_at_wall(const ReadWorker& one);
  bool wear_out() { return worn_out_.fetch_add(1, std::memory_order_relaxed) < to_wear_out_; }

  std::int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_)
        .count();
  }
  std::int64_t start_ns() const { return span_ns(start_); }  // when the gate was opened
  void sleep_until(std::int64_t ns) const {
    std::this_thread::sleep_until(start_ + std::chrono::nanoseconds(ns));
  }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  void note_error(Error error);  // keeps the first few; stops the run unless errors are skipped
  double seconds_after_ramp(std::int64_t ns) const {
    return static_cast<double>(std::max<std::int64_t>(ns - spec.ramp.count(), 0)) * 1e-9;
  }

  SampleSource source;
  const ReadSpec spec;
  const ReadWorkers workers;
  const std::uint64_t first_pass;
  const std::int64_t deadline_ns;  // 0: none
  const bool skip_errors;
  std::optional<Arrivals> arrivals;  // of an open loop

  std::atomic<bool> someone_done{false};  // the first worker that sets it writes first_done_* of `shared`
  // What no worker has alone: errors (under mutex_), first_done_* and stonewall_* (by the first worker).
  RunTally shared;

 private:
  std::mutex mutex_;
  std::latch ready_;    // all workers but the first are at the gate
  std::latch gate_{1};  // open, or called off
  std::latch at_wall_;  // all workers are at the stonewall
  std::latch wall_{1};
  bool called_off_ = false;
  std::atomic<bool> stop_{false};
  std::uint64_t to_wear_out_ = 0;
  std::atomic<std::uint64_t> worn_out_{0};
  std::chrono::steady_clock::time_point start_;
};

// Opens all objects for collective reads; see ReadEngine::make().
Result<void> open_for_collective_reads(const ReadWork& work, HeldObjects& objects);

class ReadWorker {
 public:
  ReadWorker(const ReadWork& work, const ReadOptions& options, HeldObjects& objects);

  Result<void> prepare();  // makes buffers and the queue; before the first run

  // How many positions a pass has: samples of this rank, or rounds of all ranks.
  std::uint64_t positions() const;

  // The body of the thread. `watch`, if there is one, is called with the time about ten times a second.
  using Watch = std::function<void(std::int64_t now_ns)>;
  void work(ReadRun& run, const Watch& watch = {});

  // What was delivered so far, with the ramp, and the bytes of the ramp alone. Only the worker writes, so a
  // load and a store are enough; any thread reads. On a cache line of its own.
  struct alignas(64) Delivered {
    std::atomic<std::uint64_t> samples{0};
    std::atomic<std::uint64_t> bytes{0};
    std::atomic<std::uint64_t> ramp_bytes{0};

    void count(std::uint64_t sample_bytes) {
      samples.store(samples.load(std::memory_order_relaxed) + 1, std::memory_order_relaxed);
      bytes.store(bytes.load(std::memory_order_relaxed) + sample_bytes, std::memory_order_relaxed);
    }
    std::uint64_t after_ramp() const {
      const std::uint64_t ramp = ramp_bytes.load(std::memory_order_relaxed);
      const std::uint64_t all = bytes.load(std::memory_order_relaxed);
      return all > ramp ? all - ramp : 0;
    }
  };
  const Delivered& delivered() const { return delivered_; }

  // After the run, from the thread that joined.
  const RunTally& tally() const { return tally_; }
  std::int64_t last_done_ns() const { return last_done_ns_; }
  std::uint64_t taken() const { return taken_; }  // samples; also while it waits at the stonewall

 private:
  struct Slot {                 // of one read in flight
    std::span<std::byte> room;  // in memory_, for the largest sample, in whole blocks of direct I/O
    std::uint64_t sample = 0;
    SampleList::Sample entry;  // a copy: the list is too large for a cache
    std::int64_t started_ns = 0;
    bool wrong = false;  // its checksum is wrong; account() counts it
  };

  void reset();
  void loop(ReadRun& run);
  void loop_alone(ReadRun& run);
  void loop_queue(ReadRun& run);
  void loop_together(ReadRun& run);  // collective_reads.cpp
  bool next(ReadRun& run, std::int64_t now_ns, std::uint64_t& sample);
  bool wait_until_due(ReadRun& run, std::int64_t& due_ns, std::int64_t& now_ns);
  std::string_view object_name(const SampleList::Sample& entry) const;
  Result<void> inspect(const ReadRun& run, Slot& slot, std::uint64_t bytes);
  void account(ReadRun& run, Slot& slot, const Result<void>& outcome, std::int64_t end_ns);
  void deliver(ReadRun& run, std::uint64_t bytes, std::int64_t started_ns, std::int64_t end_ns);
  void pass_boundary(ReadRun& run, std::int64_t now_ns);
  void end_second();
  void done(ReadRun& run);
  void give_span(const ReadRun& run) const;

  const ReadWork work_;
  const ReadOptions& options_;
  const bool whole_objects_;  // each sample is the whole of an object
  HeldObjects& objects_;

  Buffer memory_;
  std::vector<Slot> slots_;
  SampleReader reader_;  // after memory_, so destroyed before it: a read may be in flight
  std::vector<std::uint32_t> free_slots_;

  PassOrder order_;
  std::optional<CollectiveOrder> rounds_;  // in place of order_ where ranks read together
  SampleChecks checks_;
  Slice slice_;
  std::uint64_t position_ = 0;
  std::uint64_t ahead_ = 0;  // the sample at position_, looked up one sample early
  bool past_deadline_ = false;
  bool wearing_out_ = false;  // after the stonewall
  std::uint64_t taken_ = 0;

  RunTally tally_;
  std::int64_t last_done_ns_ = 0;
  std::int64_t ramp_ns_ = 0;  // > 0 while the ramp lasts
  std::int64_t second_ends_ns_ = 0;
  const Watch* watch_ = nullptr;
  std::int64_t next_watch_ns_ = INT64_MAX;
  std::int64_t next_boundary_ns_ = 0;  // the earliest of ramp end, second end, deadline, next watch
  std::uint64_t ramp_samples_ = 0;
  std::uint64_t bytes_before_second_ = 0;
  Delivered delivered_;
};

}  // namespace penstock
