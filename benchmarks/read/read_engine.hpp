// The read engine: threads that read samples of a corpus as fast as the tier delivers them.
//
// The hot path of a sample is: the next position (a relaxed add every few samples), its name (two loads), the
// back end's read into a buffer that is used again, and one clock read, which ends this sample and starts the
// next. It has no allocation, no lock and no string.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/read/read_options.hpp"
#include "benchmarks/read/run_tally.hpp"
#include "datagen/cache/cache_control.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/reading/sample_order.hpp"
#include "datagen/reading/sample_reader.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"

namespace penstock {

class ReadTeam;
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
  // Counts from the start of the ramp. At a stonewall, or if the passes end before it, all threads stop. Then
  // `at_stonewall` returns the most samples that any rank has, and they go on until this rank has as many.
  ReadEnd end = Passes{};
  std::chrono::nanoseconds ramp{0};  // completions in this time are not counted
  std::chrono::nanoseconds measured_before{
      0};               // by earlier runs of the cell: the seconds of the series continue
  bool verify = false;  // compare each sample's CRC32C with the manifest's (which must have them)
  std::optional<std::uint64_t> first_pass{};  // of the shuffle; absent: the one after the last run
  std::function<void()> at_gate{};            // called when all threads are ready, before the clock starts
  // The number of the repeat, if the run is measured. Then, under the profiler, each thread gives a span of
  // what it delivered after the ramp (PENSTOCK_READ without a number; its epoch is this number). Only such a
  // run is an open loop, if the options ask for one: the first thread that is free starts a sample when it
  // is due, and latencies count from then.
  std::optional<std::uint32_t> measured{};
  // Called once at the stonewall, by the thread that called run(), with the number of samples taken so far.
  // Returns the most that any rank has. Absent: no rank has more.
  std::function<std::uint64_t(std::uint64_t taken)> at_stonewall{};
};

// Gets what was delivered so far: samples, bytes and elapsed_s alone. Called about ten times a second by the
// thread that called run(), between two of its samples.
using ReadObserver = std::function<void(const RunTally& so_far)>;

// Keeps buffers, decoders, queues and open readers from run to run; its threads live for one run. One run at
// a time. Borrows the options.
class ReadEngine {
 public:
  // Allocates memory for the largest sample, most_threads() * depth times. Opens the objects that hold
  // several samples, as many as the limit of descriptors allows; the others are opened when they are read.
  // If an object cannot be opened, its samples fail later. A collective reader fails at once: it needs all
  // objects open, and is `exhausted` if the limit of descriptors is too low.
  static Result<std::unique_ptr<ReadEngine>> make(const ReadWork& work, const ReadOptions& options);
  ~ReadEngine();

  // Every run continues the shuffle where the last one ended: no two passes of an engine have the same order.
  // Stops between samples when interrupted().
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

// What is left to do of the run after a first part of it. The end of `spec` does not count the ramp.
ReadSpec rest_of(const ReadSpec& spec, const RunTally& so_far);

// A repeat: passes, each in the cache state that was asked for, until they have lasted long enough.
struct RepeatPlan {
  std::string what{};  // for the progress line: "reading"
  ReadSpec spec{};     // of the whole repeat; its end does not count the ramp
  std::function<RunTally(const ReadSpec& pass, const ReadObserver& observer)> run{};
  ReadObserver observer{};                            // may be empty; counts from the start of the repeat
  std::function<void(std::string_view what)> note{};  // may be empty
};

struct RepeatFigures {
  RunTally tally;
  CacheState cache;               // before the first pass
  Verdict verdict = Verdict::ok;  // not_cold or not_warm, if that is what any pass was
  std::string reason;
  std::uint64_t read_call_bytes = 0;          // that crossed the back end's seam
  std::optional<std::uint64_t> device_bytes;  // that came from the device or server for the ranks
};

// Prepares, runs, and does so again while time is left to fill: only files that were evicted take more than
// one turn, since their passes must be evicted in between. What is not timed may take ten times as long as
// what is, and half a minute, before the repeat ends as it is. Absent when interrupted before anything was
// measured. Collective.
std::optional<RepeatFigures> run_repeat(ReadTeam& team, Tier& tier, CacheControl& cache,
                                        const RepeatPlan& plan);

}  // namespace penstock
