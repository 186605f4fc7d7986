// The read engine: threads that take samples of a corpus as fast as a tier gives them.
//
// The hot path of a sample is: the next position (a relaxed add every few samples), its name (two loads), the
// back end's read into a buffer that is used again, and one clock read, which ends this sample and starts the
// next. No allocation, no lock, no string.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "benchmarks/read/read_options.hpp"
#include "benchmarks/read/run_tally.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/reading/sample_order.hpp"
#include "datagen/reading/sample_reader.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

class ReadWorker;

// What is read. Borrowed: all of it must outlive the engine.
struct ReadWork {
  const Manifest* manifest = nullptr;
  const SampleList* samples = nullptr;  // the manifest's (corpus_samples)
  Backend* backend = nullptr;
  const std::vector<std::uint64_t>* offsets = nullptr;  // of SampleOrder::physical: by sample
  RankShare share{};                                    // of every pass

  PassOrder order(const ReadOptions& options) const;
};

// One run: how many threads, and when it ends.
struct ReadSpec {
  unsigned threads = 1;          // at most ReadOptions::most_threads()
  std::uint64_t max_passes = 0;  // 0: no bound
  // Counts from the start of the ramp. At a stonewall, or where the passes end before it, all threads stop;
  // they hear by `at_stonewall` how many samples any rank has, and go on until they have that many.
  ReadEnd end = Passes{};
  std::chrono::nanoseconds ramp{0};  // what completes before is thrown away
  std::chrono::nanoseconds measured_before{
      0};               // by earlier runs of the cell: the seconds of the series go on
  bool verify = false;  // compare each sample's CRC32C with the manifest's (which must have them)
  std::optional<std::uint64_t> first_pass{};  // of the shuffle; absent: behind the run before
  std::function<void()> at_gate{};            // called when all threads are ready, before the clock starts
  // Of a run that is measured: under the profiler, each thread gives a span of what it delivered after the
  // ramp (PENSTOCK_READ without a number; its epoch is this one, of the repeat). Only such a run is an open
  // loop, where the options ask for one: samples are started when they are due, by the first thread that is
  // free; latencies count from then.
  std::optional<std::uint32_t> measured{};
  // Called once at the stonewall, by the thread that called run(), with the samples that were taken so far;
  // returns how many any rank has. Absent: no rank has more.
  std::function<std::uint64_t(std::uint64_t taken)> at_stonewall{};
};

// Called about ten times a second by the thread that called run(), between two of its samples: all that was
// delivered so far.
struct ReadProgress {
  double elapsed_s = 0;
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
};
using ReadObserver = std::function<void(const ReadProgress&)>;

// Keeps buffers, decoders, queues and open readers from run to run; its threads live for one run. One run at
// a time. Borrows the options.
class ReadEngine {
 public:
  // Makes room for the largest sample, most_threads() * depth times, and opens objects that hold several
  // samples (as many as descriptors allow; the rest when their turn comes). An object that cannot be opened
  // now is an error of its samples later, but of a collective reader at once: all stay open, `exhausted`
  // where that takes too many descriptors.
  static Result<std::unique_ptr<ReadEngine>> make(const ReadWork& work, const ReadOptions& options);
  ~ReadEngine();

  // Every run continues the shuffle where the one before ended: no two passes of an engine have the same
  // order. Stops between samples when interrupted().
  RunTally run(const ReadSpec& spec, const ReadObserver& observer = {});

 private:
  ReadEngine(const ReadWork& work, const ReadOptions& options);
  Result<void> open_objects();

  const ReadWork work_;
  const ReadOptions& options_;
  HeldObjects objects_;
  std::vector<std::unique_ptr<ReadWorker>> workers_;
  std::uint64_t passes_run_ = 0;
};

}  // namespace penstock
