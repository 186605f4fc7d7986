// The baseline: the simplest loop on the same work, with which Penstock's own readers are compared.
#pragma once

#include "datagen/yardsticks/read_plan.hpp"

namespace penstock {

// Each of `threads` threads takes the next sample number from a shared counter and reads that sample into its
// own reused buffer. It opens, reads and closes the object, or uses pread if samples are ranges. If
// can_use_system_calls() is true it uses system calls, else Backend::read_object or Reader::read_at. It has
// no options, measures no latencies, and checks only that all bytes came. The start and end of the threads
// are part of the measured work. The first error ends it.
Result<LoopDone> baseline_read(const ReadPlan& plan, unsigned threads, const LoopEnd& end);

}  // namespace penstock
