// The baseline: the simplest loop that does the same work as Penstock's own readers. The rates of the readers
// are compared with the rate of this loop.
#pragma once

#include "datagen/yardsticks/read_plan.hpp"

namespace penstock {

// Reads samples with the simplest loop. Each of `threads` threads takes the next sample number from a shared
// counter and reads that sample into its own reused buffer. To read a whole object, the thread opens, reads
// and closes the object. To read a range of an object, the thread reads at an offset of the open object.
// If can_use_system_calls() is true it uses system calls (openat, pread and close), else Backend::read_object
// or Reader::read_at.
// The loop has no options, measures no latencies, and only checks that it got all bytes. The start and the
// end of the threads are part of the measured work. The first error ends the loop.
Result<LoopDone> baseline_read(const ReadPlan& plan, unsigned threads, const LoopEnd& end);

}  // namespace penstock
