// The simplest possible loop on the same work: what penstock's own readers are held against.
#pragma once

#include "datagen/yardsticks/read_plan.hpp"

namespace penstock {

// `threads` threads take the next sample number from one counter and read the sample into a buffer that each
// uses again and again: open, read, close (or pread, where samples are ranges), straight by system calls
// where by_system_calls() says so, else by Backend::read_object or Reader::read_at. No options, no
// latencies, no checks but that every byte came. Starting and joining the threads is part of the work.
// The first error ends it.
Result<LoopDone> baseline_read(const ReadPlan& plan, unsigned threads, const LoopEnd& end);

}  // namespace penstock
