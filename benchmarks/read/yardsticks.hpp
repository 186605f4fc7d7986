// What a read is held against in the same run: the simplest loop on the same work, and the best that the
// probe series reaches on the same tier.
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

// One thread at a time. Borrows the options and what `work` points to. Of several ranks, each reads its own
// share of the first pass.
class Yardsticks {
 public:
  Yardsticks(const ReadWork& work, const ReadOptions& options);
  Yardsticks(const Yardsticks&) = delete;  // its parts refer to each other
  Yardsticks& operator=(const Yardsticks&) = delete;

  // The baseline loop (datagen/yardsticks/baseline.hpp; with ReadOptions::decode the same loop with the
  // decoder behind every read), timed from before its threads start to after they end, for as long as `spec`
  // says: whole passes in sequence where it asks for them. Only samples, bytes, passes, times and the failure
  // are filled in.
  RunTally baseline(const ReadSpec& spec);

  // The probes to try for that many clients: those of ceiling_probes(), and queues as deep as the reader's.
  std::vector<LoopShape> probe_series(unsigned threads) const;
  // One probe, timed as the baseline. Like a reader, it discards a queue's first pass where that is short and
  // more may follow: new threads and untouched memory are slow.
  RunTally probe(const LoopShape& shape, const ReadSpec& spec);

  // Measures every probe for a short while, then the two best for longer: what looked best may only have been
  // lucky. `measure` runs a repeat of a probe and returns its payload rate; 0 if it failed.
  using MeasureProbe = std::function<double(const LoopShape& shape, std::chrono::nanoseconds at_least)>;
  void try_probes(unsigned threads, const MeasureProbe& measure) const;

  // Payload that the yardsticks read past the back end, so that it did not count it.
  std::uint64_t uncounted_bytes() const { return uncounted_bytes_; }

 private:
  using Loop = std::function<Result<LoopDone>(const LoopEnd& end)>;
  RunTally timed(const ReadSpec& spec, const Loop& loop, double a_pass_s = 0);  // where that is known before
  Result<LoopDone> decoding_loop(unsigned threads, const LoopEnd& end) const;

  ReadWork own_part(ReadWork work);

  SampleList share_;  // of this rank; empty where it has all
  std::vector<std::uint64_t> share_offsets_;
  const ReadOptions& options_;
  const ReadWork work_;  // after the share, which it may refer to
  const ReadPlan plan_;
  std::uint64_t uncounted_bytes_ = 0;
};

}  // namespace penstock
