// The probe series: loops of several shapes over the same samples. The fastest is the ceiling of a tier for
// these clients, sizes and cache state.
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <vector>

#include "datagen/yardsticks/read_plan.hpp"
#include "io_backends/backend/buffer.hpp"

namespace penstock {

enum class LoopKind : uint8_t {
  blocking,  // the loop of the baseline: one read at a time in each thread
  // Each thread opens its next files and asks the kernel to fetch them before it reads the current one.
  readahead,
  streamed,  // reads objects from front to back in blocks of 1 MiB, without regard to samples
  queued,    // each thread keeps `depth` operations in flight through a queue of the back end
};

// The parameters of one probe. Its name has kind, threads and depth: "blocking.8", "queued.2x16".
struct LoopShape {
  LoopKind kind = LoopKind::blocking;
  unsigned threads = 1;
  unsigned depth = 1;
  std::string name() const;
};

// The probes to try for `threads` clients. More threads (two and four times as many) are always tried.
// Readahead is tried for whole objects that are read by system calls, streams for samples that are ranges,
// and queues for asynchronous or emulated tiers. The first probe is the baseline. There are at most five, so
// that there is time for each. Mapped files are not tried. For whole files their page faults make them slower
// than read(2), and a file that shrinks would kill the process.
std::vector<LoopShape> ceiling_probes(const ReadPlan& plan, unsigned threads);

// Runs one probe any number of times. The first run makes its queues and their memory, and later runs use
// them again. One thread at a time. Borrows everything that `plan` refers to.
class CeilingLoop {
 public:
  // The queue and memory of one thread of a queued loop.
  struct QueuedThread {
    Buffer memory;
    std::vector<std::unique_ptr<Reader>> own_readers;  // Readers of objects that are not held open
    // Destroyed first, because operations in flight use the other members.
    std::unique_ptr<Queue> queue;
  };

  CeilingLoop(const ReadPlan& plan, const LoopShape& shape);

  Result<LoopDone> run(const LoopEnd& end);  // reads until `end`; errors as in baseline_read()

 private:
  Result<LoopDone> run_queued(LoopEnd end);
  Result<void> read_with_queue(QueuedThread& thread, size_t slot_bytes, const OpenObjects& objects,
                               LoopControl& control, LoopDone& done) const;

  const ReadPlan plan_;
  const LoopShape shape_;
  std::vector<QueuedThread> queued_threads_;
};

}  // namespace penstock
