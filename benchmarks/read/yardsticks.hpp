// Measures two rates to compare a read with, in the same run. The baseline is the rate of the simplest loop
// on the same work. The ceiling is the rate of the fastest probe on the same tier.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "benchmarks/read/read_engine.hpp"
#include "datagen/yardsticks/ceiling.hpp"
#include "datagen/yardsticks/read_plan.hpp"

namespace penstock {

// Runs the baseline and the probes. If there are several ranks, each reads only its own share of the samples.
// Only one thread at a time may use it. Borrows the options and everything that `work` points to.
class Yardsticks {
 public:
  Yardsticks(const ReadWork& work, const ReadOptions& options);
  Yardsticks(const Yardsticks&) = delete;  // not copyable, because its parts refer to each other
  Yardsticks& operator=(const Yardsticks&) = delete;

  // Measures the baseline: runs its loop (datagen/yardsticks/baseline.hpp) on the samples of this rank. With
  // ReadOptions::decode the loop also decodes after every read. With ReadOptions::depth above 1 it is a loop
  // over queues of that depth (CeilingLoop), which cannot decode. The time includes the start and the end of
  // its threads. If `spec` asks for passes, it reads whole passes one after another. Only samples, bytes,
  // passes, times, the failure and its text (first_errors) are set in the result.
  RunTally baseline(const ReadSpec& spec);
  LoopShape baseline_shape(unsigned threads) const;  // as many reads in flight as Penstock's reader

  // The probes to try for `threads` clients: those of ceiling_probes(). If the samples are shuffled, none
  // that streams. If ReadOptions::depth is above 1, also one with queues of that depth.
  std::vector<LoopShape> probe_series(unsigned threads) const;
  std::chrono::nanoseconds first_probe_time() const;  // how long try_probes() measures each probe at first
  // Runs one probe, timed in the same way as the baseline. In the first pass of a queued probe, the threads
  // and the memory are new, which makes it slow. So if that pass is short and more passes may follow, its
  // result is discarded. (Penstock's own reader has a warm-up pass for the same reason.)
  RunTally probe(const LoopShape& shape, const ReadSpec& spec);

  // Finds the fastest probe. It measures every probe for a short time, then the two fastest for longer,
  // because one short result may be too high by chance. `measure` runs one repeat of a probe and returns its
  // payload rate, or 0 if it failed.
  using MeasureProbe = std::function<double(const LoopShape& shape, std::chrono::nanoseconds at_least)>;
  void try_probes(unsigned threads, const MeasureProbe& measure) const;

  // Payload bytes that the yardsticks read by their own system calls. The back end's counters do not include
  // them.
  uint64_t uncounted_bytes() const { return uncounted_bytes_; }

 private:
  using Loop = std::function<Result<LoopDone>(const LoopEnd& end)>;
  // `seconds_per_pass` is how long a pass took in an earlier run, or 0 if none measured it.
  RunTally run_timed(const ReadSpec& spec, const Loop& loop, double seconds_per_pass = 0);
  Result<LoopDone> decoding_loop(unsigned threads, const LoopEnd& end) const;

  ReadWork own_part(ReadWork work);

  SampleList own_samples_;  // the samples of this rank; empty if the rank reads all
  std::vector<uint64_t> own_offsets_;
  const ReadOptions& options_;
  const ReadWork work_;  // may point to own_samples_, so it must be declared after it
  const ReadPlan plan_;
  uint64_t uncounted_bytes_ = 0;
};

}  // namespace penstock
