// Threads: one thread of the command calls make(), run() and the destructor. run() starts a thread for each
// worker but the first, which works on the thread of run(). The threads end within run().
// Locks: that of FinishLatch, and those of ReadRun. None is held during a read.
// Ranks: only spec.at_gate and spec.at_stonewall are collective calls. The thread of run() makes both, once
// each, also when the run fails, since the other ranks wait in theirs.
// Memory: make() allocates buffers and queues. run() allocates little, before the clock starts and after it
// stops.
// Ctrl-C: workers look for it before each sample. Reads in flight end first. run() returns what was read.
// Crash: nothing is written.
#include "benchmarks/read/read_engine.hpp"

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <new>
#include <span>
#include <system_error>
#include <thread>

#include "benchmarks/read/read_worker.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

// On the thread of run(), while the others work: relaxed reads of counts that each worker alone writes. The
// sum is exact only at the end.
ReadProgress progress_of(std::span<const std::unique_ptr<ReadWorker>> workers, std::int64_t now_ns) {
  ReadProgress progress{.elapsed_s = static_cast<double>(now_ns) * 1e-9};
  for (const std::unique_ptr<ReadWorker>& worker : workers) {
    progress.samples += worker->delivered().samples.load(std::memory_order_relaxed);
    progress.bytes += worker->delivered().bytes.load(std::memory_order_relaxed);
  }
  return progress;
}

// Lets run() wait for its threads, and return ten times a second to report the progress.
class FinishLatch {
 public:
  explicit FinishLatch(std::size_t expected) : out_(expected) {}
  // The last step of a thread. Notifies without the lock: run() joins the thread before the latch dies.
  void arrive() {
    {
      std::lock_guard lock(mutex_);
      --out_;
    }
    changed_.notify_one();
  }
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, time, [&] { return out_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::size_t out_;  // threads that have not arrived
};

// After all threads are joined, so nothing needs a lock.
RunTally gather(const ReadRun& run, std::span<const std::unique_ptr<ReadWorker>> workers) {
  RunTally all;
  std::int64_t last_done_ns = 0;
  for (const std::unique_ptr<ReadWorker>& worker : workers) {
    all.join(worker->tally());
    last_done_ns = std::max(last_done_ns, worker->last_done_ns());
  }
  const std::int64_t from_ns = run.spec.ramp.count();
  if (run.arrivals && run.deadline_ns != 0 && !run.stopped() && !interrupted()) {
    const std::int64_t ends_ns = run.deadline_ns;
    last_done_ns = std::max(last_done_ns, ends_ns);
    all.due = run.arrivals->between(from_ns, ends_ns);
    all.open_s = static_cast<double>(ends_ns - from_ns) * 1e-9;
  }
  all.passes = run.source.passes();
  all.wall_s = static_cast<double>(std::max<std::int64_t>(last_done_ns - from_ns, 0)) * 1e-9;
  all.elapsed_s = static_cast<double>(last_done_ns) * 1e-9;
  all.first_done_s = static_cast<double>(std::max<std::int64_t>(run.first_done_ns - from_ns, 0)) * 1e-9;
  all.first_done_bytes = run.first_done_bytes;
  all.stonewall_s = static_cast<double>(std::max<std::int64_t>(run.wall_at_ns - from_ns, 0)) * 1e-9;
  all.stonewall_bytes = run.wall_bytes;
  all.first_errors = run.first_errors;
  all.failure = run.failure;
  return all;
}

}  // namespace

PassOrder ReadWork::order(const ReadOptions& options) const {
  return {options.order, samples->size(), options.seed,
          share,         offsets,         std::max<std::uint64_t>(options.window, 1)};
}

ReadEngine::ReadEngine(const ReadWork& work, const ReadOptions& options)
    : work_(work),
      options_(options),
      objects_(*work.backend,
               work.manifest->one_object_a_sample() ? 0 : objects_held_open(work.manifest->objects())) {}

ReadEngine::~ReadEngine() = default;

Result<std::unique_ptr<ReadEngine>> ReadEngine::make(const ReadWork& work, const ReadOptions& options) {
  const unsigned threads = options.most_threads();
  if (threads == 0 || options.depth == 0)
    return make_error(Errc::invalid_argument, "reading needs at least one thread and depth 1");
  if (work.manifest->samples() == 0) return make_error(Errc::not_found, "the corpus has no samples to read");
  try {
    std::unique_ptr<ReadEngine> engine(new ReadEngine(work, options));
    PENSTOCK_TRY(engine->open_objects());
    for (unsigned i = 0; i < threads; ++i) {
      engine->workers_.push_back(std::make_unique<ReadWorker>(engine->work_, options, engine->objects_));
      PENSTOCK_TRY(engine->workers_.back()->prepare());
    }
    return engine;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for " + std::to_string(threads) + " threads with " +
                                           std::to_string(options.depth) + " samples of up to " +
                                           std::to_string(work.samples->largest()) + " bytes each");
  }
}

// In make(), before there are workers. Objects that stay open now are found without a lock during a run.
Result<void> ReadEngine::open_objects() {
  const bool whole_objects = work_.manifest->one_object_a_sample();
  if (options_.collective && whole_objects)
    return make_error(Errc::invalid_argument,
                      "--collective has all ranks read each object together, and here every object is one "
                      "sample: read objects that hold many, or --block SIZE of large ones, or leave it out");
  if (whole_objects) return success();
  const std::uint64_t objects = work_.manifest->objects();
  const std::uint64_t held = objects_held_open(objects);
  if (options_.collective && held < objects)
    return make_error(Errc::exhausted, "--collective holds all " + std::to_string(objects) +
                                           " objects open, and " + std::to_string(held) +
                                           " are what the limit of descriptors leaves: raise it (ulimit -n)");
  for (std::uint64_t i = 0; i < held; ++i) {
    const auto opened = objects_.open(i, work_.samples->name(static_cast<std::uint32_t>(i)));
    if (!opened.ok() && options_.collective) return opened.error();
  }
  return success();
}

// The order: start all threads, wait until they are at the gate, start the clock, work, wait, join, gather.
// The clock starts only when all can read at once.
RunTally ReadEngine::run(const ReadSpec& spec, const ReadObserver& observer) {
  assert(spec.threads > 0 && spec.threads <= workers_.size());
  passes_run_ = spec.first_pass.value_or(passes_run_);
  ReadRun run(workers_.front()->positions(), options_, work_.share, spec, passes_run_);
  const std::span<const std::unique_ptr<ReadWorker>> workers = std::span(workers_).first(spec.threads);
  const std::span<const std::unique_ptr<ReadWorker>> others = workers.subspan(1);
  FinishLatch finish_latch(others.size());
  std::vector<std::jthread> threads;
  try {
    for (const std::unique_ptr<ReadWorker>& worker : others)
      threads.emplace_back([&run, &finish_latch, &worker, workers] {
        worker->work(run, workers);
        finish_latch.arrive();
      });
  } catch (const std::system_error& error) {
    // The threads that did start wait at the gate: without call_off() the join would last for ever.
    run.call_off();
    threads.clear();
    if (spec.at_gate) spec.at_gate();  // where the other ranks wait
    if (spec.at_stonewall) static_cast<void>(spec.at_stonewall(0));
    RunTally none;
    none.failure = errno_error(error.code().value(), "cannot start", "a reading thread");
    return none;
  }
  run.open_gate(static_cast<unsigned>(others.size()));
  ReadWorker::Watch watch;
  if (observer) watch = [&](std::int64_t now_ns) { observer(progress_of(workers, now_ns)); };
  workers.front()->work(run, workers, watch);
  while (!finish_latch.wait_for(std::chrono::milliseconds(100)))
    if (watch) watch(run.now_ns());
  // The join, before anything of the workers is read. They refer to `run`, too.
  threads.clear();
  passes_run_ += run.source.passes();
  return gather(run, workers);
}

}  // namespace penstock
