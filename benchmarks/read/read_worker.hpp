// One thread of the read engine (ReadWorker), and the state that the threads of one run share (ReadRun). Only
// sources of the engine include this.
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
#include "datagen/reading/sample_order.hpp"
#include "datagen/reading/sample_reader.hpp"
#include "io_backends/backend/buffer.hpp"

namespace penstock {

using ReadWorkers = std::span<const std::unique_ptr<ReadWorker>>;

// What the threads of one run share. It is made before they start and destroyed after they are joined.
class ReadRun {
 public:
  ReadRun(uint64_t samples, const ReadOptions& options, const RankShare& share, const ReadSpec& spec,
          uint64_t first_pass, ReadWorkers workers);

  // Waits until open_gate() has started the clock; the first worker does not wait. Each worker calls it
  // before its work. Returns false if call_off() cancelled the run.
  bool wait_at_gate(const ReadWorker& caller);
  void open_gate();  // waits until all other workers are ready, starts the clock and lets them go on
  void call_off();

  // Each worker calls this at the stonewall, and waits there for all workers. The first worker adds up their
  // results and asks how many more samples this rank must read. Then each worker reads one more sample for
  // each call of take_missing_sample() that returns true.
  void wait_at_stonewall(const ReadWorker& caller);
  bool take_missing_sample() {
    return missing_samples_taken_.fetch_add(1, std::memory_order_relaxed) < missing_samples_;
  }

  int64_t now_ns() const {
    return std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now() - start_)
        .count();
  }
  std::chrono::steady_clock::time_point start() const { return start_; }  // the time of open_gate()
  void sleep_until(int64_t ns) const { std::this_thread::sleep_until(start_ + std::chrono::nanoseconds(ns)); }
  bool stopped() const { return stop_.load(std::memory_order_relaxed); }
  // Keeps the error if it is one of the first kMostErrorsNamed. Stops the run unless errors are skipped.
  void note_error(Error error);
  double seconds_after_ramp(int64_t ns) const {
    return double(std::max<int64_t>(ns - spec.ramp.count(), 0)) * 1e-9;
  }

  SampleSource source;
  const ReadSpec spec;
  const ReadWorkers workers;
  const uint64_t first_pass;
  const int64_t deadline_ns;  // the time at which the run ends, in ns since the start; 0: no limit
  const bool skip_errors;
  std::optional<Arrivals> arrivals;  // when samples are due; only in an open loop

  // The first worker that ends sets this, and then writes first_done_* of `run_figures`.
  std::atomic<bool> any_worker_done{false};
  // Figures of the whole run that no single worker has: the errors (guarded by mutex_), first_done_* (written
  // by the worker that set any_worker_done) and stonewall_* (written by the first worker).
  RunTally run_figures;

 private:
  std::mutex mutex_;
  std::latch workers_ready_;         // counts the workers that are ready, without the first worker
  std::latch gate_{1};               // counted down by open_gate() or call_off(); workers wait for it
  std::latch workers_at_stonewall_;  // counts the workers that have reached the stonewall
  std::latch stonewall_open_{1};     // counted down by the first worker; the others wait for it
  bool called_off_ = false;
  std::atomic<bool> stop_{false};
  uint64_t missing_samples_ = 0;
  std::atomic<uint64_t> missing_samples_taken_{0};
  std::chrono::steady_clock::time_point start_;
};

class ReadWorker {
 public:
  ReadWorker(const ReadWork& work, const ReadOptions& options, HeldObjects& objects);
  virtual ~ReadWorker() = default;

  Result<void> prepare();  // makes buffers and the queue; called before the first run

  // The number of positions in a pass. A position is a place in the order in which a rank reads its share of
  // the samples (PassOrder). All ranks use the same number: the size of the largest share. A rank whose share
  // is one sample smaller reads nothing at the last position.
  virtual uint64_t positions() const { return work_.share.largest_part(work_.manifest->samples()); }

  // Does a whole run; it is the main function of the worker's thread. `watch`, if set, is called about ten
  // times a second, with the time since the start.
  using Watch = std::function<void(int64_t since_start_ns)>;
  void work(ReadRun& run, const Watch& watch = {});

  // The samples and bytes that this worker has delivered so far, with the ramp. Any thread may call this,
  // also during the run.
  uint64_t delivered_samples() const { return delivered_samples_.load(std::memory_order_relaxed); }
  uint64_t delivered_bytes() const { return delivered_bytes_.load(std::memory_order_relaxed); }
  uint64_t bytes_after_ramp() const {
    const uint64_t ramp_bytes = ramp_bytes_.load(std::memory_order_relaxed);
    const uint64_t delivered = delivered_bytes();
    return delivered > ramp_bytes ? delivered - ramp_bytes : 0;
  }

  // The following may be called after the run, by the thread that joined the workers.
  const RunTally& tally() const { return tally_; }
  int64_t last_done_ns() const { return last_done_ns_; }
  // How many samples this worker has taken. May also be called while the worker waits at the stonewall.
  uint64_t samples_taken() const { return samples_taken_; }

 protected:
  struct Slot {  // one read in flight
    // A part of memory_. It holds the largest sample, rounded up to whole blocks of direct I/O.
    std::span<std::byte> buffer;
    uint64_t sample = 0;
    SampleList::Sample entry;  // a copy, since an access to the large list may miss the cache
    int64_t started_ns = 0;
    bool wrong_checksum = false;  // set by inspect(); account() counts it and clears it
  };

  // Reads samples until next() returns false, or until the passes end.
  virtual void read_samples(ReadRun& run);
  Result<void> inspect(const ReadRun& run, Slot& slot, uint64_t bytes);
  void account(ReadRun& run, Slot& slot, const Result<void>& outcome, int64_t end_ns);

  const ReadWork work_;
  const ReadOptions& options_;
  HeldObjects& objects_;
  std::vector<Slot> slots_;
  Slice slice_;
  uint64_t position_ = 0;

 private:
  void reset();
  void wait_and_read(ReadRun& run);
  void read_one_at_a_time(ReadRun& run);
  void read_through_queue(ReadRun& run);
  bool next(ReadRun& run, int64_t now_ns, uint64_t& sample);
  std::string_view object_name(const SampleList::Sample& entry) const;
  void count_read(ReadRun& run, uint64_t bytes, int64_t started_ns, int64_t end_ns);
  void handle_boundary(ReadRun& run, int64_t now_ns);
  void close_second();
  void finish(ReadRun& run);
  // These three are defined in rare_steps.cpp. Only an open loop uses wait_and_read_in_open_loop() and
  // wait_until_due(). Only the profiler uses what record_span() records.
  void wait_and_read_in_open_loop(ReadRun& run);
  bool wait_until_due(ReadRun& run, int64_t& due_ns, int64_t& now_ns);
  void record_span(const ReadRun& run) const;

  const bool whole_objects_;  // each sample is a whole object

  Buffer memory_;
  // Declared after memory_ and so destroyed before it, because its reads in flight use memory_.
  SampleReader reader_;
  std::vector<uint32_t> free_slots_;

  PassOrder order_;
  SampleChecks checks_;
  // The sample at position_; it is computed early, so that its list entry can be prefetched.
  uint64_t next_sample_ = 0;
  bool past_deadline_ = false;
  bool reads_missing_samples_ = false;  // true after the stonewall, while this worker reads missing samples
  uint64_t samples_taken_ = 0;

  RunTally tally_;
  int64_t last_done_ns_ = 0;
  int64_t ramp_ns_ = 0;  // end of the ramp, in ns since the start; 0 when the ramp is over
  int64_t second_ends_ns_ = 0;
  const Watch* watch_ = nullptr;
  int64_t next_watch_ns_ = INT64_MAX;
  // When handle_boundary() must be called next: at the end of the ramp, the end of the second, the deadline
  // or the next call of `watch`, whichever is first.
  int64_t next_boundary_ns_ = 0;
  uint64_t ramp_samples_ = 0;
  uint64_t bytes_before_second_ = 0;

  // The samples and bytes that were delivered, with the ramp, and the bytes of the ramp alone. Only this
  // worker writes them, so relaxed loads and stores are enough. Other threads read them, so they are in
  // another cache line than what this worker uses for each sample.
  alignas(64) std::atomic<uint64_t> delivered_samples_{0};
  std::atomic<uint64_t> delivered_bytes_{0};
  std::atomic<uint64_t> ramp_bytes_{0};
};

// For collective reads, in which all ranks read each object together. open_for_collective_reads() opens all
// objects; ReadEngine::make() returns its errors. collective_worker() makes a worker that reads this way.
Result<void> open_for_collective_reads(const ReadWork& work, HeldObjects& objects);
std::unique_ptr<ReadWorker> collective_worker(const ReadWork& work, const ReadOptions& options,
                                              HeldObjects& objects);

}  // namespace penstock
