// The probe series: loops of several shapes over the same samples, the best of which is the ceiling that a
// tier gives these clients for these sizes in this cache state.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "datagen/yardsticks/read_plan.hpp"
#include "io_backends/backend/buffer.hpp"

namespace penstock {

enum class LoopKind : std::uint8_t {
  blocking,   // the baseline loop
  readahead,  // each thread opens its next files and asks the kernel for their bytes before it reads this one
  streamed,   // objects front to back in blocks of 1 MiB, whatever the samples in them are
  queued,     // Backend's queue, `depth` operations in flight a thread
};

// One probe. Its name says what it is: "blocking.8", "queued.2x16".
struct LoopShape {
  LoopKind kind = LoopKind::blocking;
  unsigned threads = 1;
  unsigned depth = 1;
  std::string name() const;
};

// The probes worth trying around `threads` clients: more threads (twice and four times as many), readahead
// (whole objects read by system calls), streams (samples that are ranges), queues (asynchronous or emulated
// tiers). The first probe is the baseline itself. At most five, so that trying each is affordable. Mapping
// files is not among them: for whole files it loses to read(2) to page faults, and a file that shrinks would
// kill the process.
std::vector<LoopShape> ceiling_probes(const ReadPlan& plan, unsigned threads);

// One probe, run as often as one likes. Its queues, and the memory that they read to, are made by the first
// run and stay for the next. One thread at a time; borrows what `plan` refers to.
class CeilingLoop {
 public:
  // What a thread of a queued loop reads by.
  struct Lane {
    Buffer memory;
    std::vector<std::unique_ptr<Reader>> own;  // of objects that are not held open
    std::unique_ptr<Queue> queue;              // goes first: operations in flight need the others
  };

  CeilingLoop(const ReadPlan& plan, const LoopShape& shape);

  Result<LoopDone> run(const LoopEnd& end);  // as baseline_read

 private:
  Result<LoopDone> run_queued(LoopEnd end);
  Result<void> read_lane(Lane& lane, std::size_t room, const OpenObjects& objects, LoopControl& control,
                         LoopDone& done) const;

  const ReadPlan plan_;
  const LoopShape shape_;
  std::vector<Lane> lanes_;
};

}  // namespace penstock
