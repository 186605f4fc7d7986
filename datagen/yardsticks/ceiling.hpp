// The probe series: loops of several shapes, which all read the same samples. The rate of the fastest loop is
// the ceiling of the tier. The ceiling is valid only for one number of clients, the sizes of these samples,
// and one cache state.
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
  // Each thread opens its next files early and asks the kernel to fetch them.
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

// The probes to try for `threads` clients. The first is the loop of the baseline. There are at most five, so
// that there is time for each. Besides the baseline's loop, these are tried:
// - the same loop with two and with four times as many threads,
// - `readahead` for whole objects that are read by system calls,
// - `streamed` for samples that are ranges,
// - `queued` for asynchronous or emulated tiers.
// Mapped files are not tried. For whole files their page faults make them slower than read(2), and a file
// that shrinks would kill the process.
std::vector<LoopShape> ceiling_probes(const ReadPlan& plan, unsigned threads);

// Runs one probe as often as needed. The first run makes its queues and their memory, and later runs reuse
// them. Only one thread at a time may use it. Borrows everything that `plan` refers to.
class CeilingLoop {
 public:
  // The queue of one thread of a queued loop, and the memory of its reads.
  struct QueuedThread {
    Buffer memory;
    std::vector<std::unique_ptr<Reader>> own_readers;  // Readers of objects that are not held open
    // Declared last and so destroyed first, because operations in flight use the other members.
    std::unique_ptr<Queue> queue;
  };

  CeilingLoop(const ReadPlan& plan, const LoopShape& shape);

  Result<LoopDone> run(const LoopEnd& end);  // runs the loop until `end`; errors as in baseline_read()

 private:
  Result<LoopDone> run_queued(LoopEnd end);
  Result<void> read_with_queue(QueuedThread& thread, size_t slot_bytes, const OpenObjects& objects,
                               LoopControl& control, LoopDone& done) const;

  const ReadPlan plan_;
  const LoopShape shape_;
  std::vector<QueuedThread> queued_threads_;
};

}  // namespace penstock
