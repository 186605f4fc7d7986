// Measures what a read is compared with in the same run. The baseline is the simplest loop on the same work.
// The ceiling is the fastest probe on the same tier.
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

// Runs the baseline and the probes. Each of several ranks reads its own share of the first pass. One thread
// at a time. Borrows the options and everything that `work` points to.
class Yardsticks {
 public:
  Yardsticks(const ReadWork& work, const ReadOptions& options);
  Yardsticks(const Yardsticks&) = delete;  // not copyable, because its parts refer to each other
  Yardsticks& operator=(const Yardsticks&) = delete;

  // Runs the baseline loop (datagen/yardsticks/baseline.hpp). With ReadOptions::decode the loop also decodes
  // after every read. The time includes the start and end of its threads. If `spec` asks for passes, it reads
  // whole passes one after another. Only samples, bytes, passes, times and the failure are set.
  RunTally baseline(const ReadSpec& spec);

  // The probes to try for `threads` clients: those of ceiling_probes(), and queues as deep as the reader's.
  std::vector<LoopShape> probe_series(unsigned threads) const;
  // Runs one probe, with the same timing as the baseline. It discards the first pass of a queue if the pass
  // is short and more may follow, because new threads and untouched memory are slow. The reader does the
  // same.
  RunTally probe(const LoopShape& shape, const ReadSpec& spec);

  // Measures every probe for a short time, then the two fastest for longer, because one short result may be
  // too high by chance. `measure` runs one repeat of a probe and returns its payload rate, or 0 if it failed.
  using MeasureProbe = std::function<double(const LoopShape& shape, std::chrono::nanoseconds at_least)>;
  void try_probes(unsigned threads, const MeasureProbe& measure) const;

  // Payload bytes that the yardsticks read by system calls, which the back end did not count.
  uint64_t uncounted_bytes() const { return uncounted_bytes_; }

 private:
  using Loop = std::function<Result<LoopDone>(const LoopEnd& end)>;
  // `seconds_per_pass` is 0 if no earlier run measured it.
  RunTally run_timed(const ReadSpec& spec, const Loop& loop, double seconds_per_pass = 0);
  Result<LoopDone> decoding_loop(unsigned threads, const LoopEnd& end) const;

  ReadWork own_part(ReadWork work);

  SampleList own_samples_;  // the samples of this rank; empty if the rank reads all
  std::vector<uint64_t> own_offsets_;
  const ReadOptions& options_;
  const ReadWork work_;  // declared after own_samples_, to which it may refer
  const ReadPlan plan_;
  uint64_t uncounted_bytes_ = 0;
};

}  // namespace penstock
