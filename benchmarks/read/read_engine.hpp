// The read engine: threads that read samples of a corpus as fast as the tier delivers them.
//
// The hot path of a sample has four parts. It takes the next position, by a relaxed add every few samples. It
// finds the name, by two loads. The back end reads into a reused buffer. One read of the clock ends this
// sample and starts the next. The hot path has no allocation, no lock and no string.
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

// The corpus and the tier that an engine reads. Everything is borrowed and must outlive the engine.
struct ReadWork {
  const Manifest* manifest = nullptr;
  const SampleList* samples = nullptr;  // the samples of the manifest, from corpus_samples()
  Backend* backend = nullptr;
  // For SampleOrder::physical: the offset of each sample on the device.
  const std::vector<std::uint64_t>* offsets = nullptr;
  RankShare share{};  // the part of every pass that this rank reads

  PassOrder order(const ReadOptions& options) const;
};

// One run: how many threads, and when it ends.
struct ReadSpec {
  unsigned threads = 1;          // at most ReadOptions::most_threads()
  std::uint64_t max_passes = 0;  // passes after which the run ends; 0: no limit
  // A time limit counts from the start of the ramp. At a stonewall, or when the passes end before it, all
  // threads stop. Then `at_stonewall` returns the most samples that any rank has read, and this rank reads on
  // until it has as many.
  ReadEnd end = Passes{};
  std::chrono::nanoseconds ramp{0};  // completions in this time are not counted
  // Time of earlier runs of this cell, so that the series of values per second continues.
  std::chrono::nanoseconds measured_before{0};
  bool verify = false;  // compare each sample's CRC32C with the manifest, which must have checksums
  // The number of the first pass, for the shuffle. Absent: continues after the last run.
  std::optional<std::uint64_t> first_pass{};
  std::function<void()> at_gate{};  // called when all threads are ready, before the clock starts
  // The number of the repeat if the run is measured, else nothing. Under the profiler, each thread of a
  // measured run records one span of what it delivered after the ramp (PENSTOCK_READ; the span's epoch is
  // this number). Only a measured run is an open loop, if the options ask for one. In an open loop the first
  // free thread starts a sample when it is due, and its latency counts from that time.
  std::optional<std::uint32_t> measured{};
  // Called once at the stonewall, on the thread of run(), with the number of samples that this rank has
  // taken. Returns the largest number of any rank. Absent: there are no other ranks.
  std::function<std::uint64_t(std::uint64_t taken)> at_stonewall{};
};

// Receives the progress of a run. Only samples, bytes and elapsed_s are set. The thread of run() calls it
// about ten times a second, between two of its samples.
using ReadObserver = std::function<void(const RunTally& so_far)>;

// Reads a corpus with several threads. Keeps buffers, decoders, queues and open readers between runs. Its
// threads exist only during a run. One run at a time. Borrows the options.
class ReadEngine {
 public:
  // Allocates most_threads() * depth buffers, each for the largest sample. Opens the objects that hold
  // several samples, as many as the limit of descriptors allows. The others are opened for each read. If an
  // object cannot be opened, reads of its samples fail later. A collective reader needs all objects open. It
  // fails here if one cannot be opened, with `exhausted` if the limit of descriptors is too low.
  static Result<std::unique_ptr<ReadEngine>> make(const ReadWork& work, const ReadOptions& options);
  ~ReadEngine();

  // Reads as `spec` asks. Every run continues the shuffle after the last one, so no two passes of an engine
  // have the same order. Stops between samples when interrupted().
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

// The specification of the rest of a run, after a first part with the result `so_far`. The time limit of
// `spec` does not include the ramp.
ReadSpec rest_of(const ReadSpec& spec, const RunTally& so_far);

// How to do a repeat: passes, each in the requested cache state, until they have lasted long enough.
struct RepeatPlan {
  std::string what{};  // text of the progress line: "reading"
  ReadSpec spec{};     // for the whole repeat; its time limit does not include the ramp
  std::function<RunTally(const ReadSpec& pass, const ReadObserver& observer)> run{};
  // May be empty; its times count from the start of the repeat.
  ReadObserver observer{};
  std::function<void(std::string_view what)> note{};  // shows a progress text; may be empty
};

struct RepeatFigures {
  RunTally tally;
  CacheState cache;  // the proven cache state before the first pass
  // The verdict is not_cold or not_warm if a pass did not start in the requested cache state.
  Verdict verdict = Verdict::ok;
  std::string reason;
  std::uint64_t read_call_bytes = 0;          // bytes that the back end's read calls returned
  std::optional<std::uint64_t> device_bytes;  // bytes that came from the device or server, for all ranks
};

// Runs a repeat. Prepares the cache and runs passes, again and again until the wanted time is reached. Only
// evicted files need more than one turn, because their cache must be evicted again before each pass. The
// repeat ends early when the whole work has taken more than 30 s plus ten times the wanted time. Returns
// nothing if interrupted before anything was measured. Collective.
std::optional<RepeatFigures> run_repeat(ReadTeam& team, Tier& tier, CacheControl& cache,
                                        const RepeatPlan& plan);

}  // namespace penstock
