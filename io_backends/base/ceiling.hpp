// The probe ladder: loops of several shapes over the same samples, the best of which is the ceiling that a
// tier gives these clients for these sizes in this cache state.
#pragma once

#include <string>
#include <vector>

#include "io_backends/base/read_plan.hpp"

namespace penstock {

enum class LoopKind : std::uint8_t {
  blocking,   // the baseline loop
  readahead,  // each thread opens its next files and asks the kernel for their bytes before it reads this one
  streamed,   // objects front to back in blocks of 1 MiB, whatever the samples in them are
  queued,     // Backend's queue, `depth` operations in flight a thread
};

// One rung. Its name says what it is: "blocking.8", "queued.2x16".
struct LoopShape {
  LoopKind kind = LoopKind::blocking;
  unsigned threads = 1;
  unsigned depth = 1;
  std::string name() const;
};

// The rungs worth trying around `threads` clients: more threads (twice and four times as many), readahead
// (whole objects read by system calls), streams (samples that are ranges), queues (asynchronous or emulated
// tiers). The first rung is the baseline itself. At most five, so that trying each is affordable. Mapping
// files is not among them: for whole files it loses to read(2) to page faults, and a file that shrinks would
// kill the process.
std::vector<LoopShape> ceiling_ladder(const ReadPlan& plan, unsigned threads);

// Runs one rung, as baseline_read.
Result<LoopDone> ceiling_read(const ReadPlan& plan, const LoopShape& shape, const LoopEnd& end);

}  // namespace penstock
