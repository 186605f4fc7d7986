// What a read is held against in the same run: the simplest loop on the same work, and the best that the
// probe series reaches on the same tier.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "benchmarks/read/read_engine.hpp"
#include "datagen/yardsticks/ceiling.hpp"
#include "datagen/yardsticks/read_plan.hpp"

namespace penstock {

// One thread at a time. Borrows the options and what `work` points to.
class Yardsticks {
 public:
  Yardsticks(const ReadWork& work, const ReadOptions& options);

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

  // Payload that the yardsticks read past the back end, so that it did not count it.
  std::uint64_t uncounted_bytes() const { return uncounted_bytes_; }

 private:
  using Loop = std::function<Result<LoopDone>(const LoopEnd& end)>;
  RunTally timed(const ReadSpec& spec, const Loop& loop, double a_pass_s = 0);  // where that is known before
  Result<LoopDone> decoding_loop(unsigned threads, const LoopEnd& end) const;

  const ReadWork work_;
  const ReadOptions& options_;
  const ReadPlan plan_;
  std::uint64_t uncounted_bytes_ = 0;
};

}  // namespace penstock
