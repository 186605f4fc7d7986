// Spans: what a thread of a program did from one time to another, as reported by the program. This is a part
// of the format of sessions (session_abi.h). Penstock's own programs record their activities in the same form
// (profiling/spans).
#ifndef PENSTOCK_PROFILING_SPAN_ABI_H
#define PENSTOCK_PROFILING_SPAN_ABI_H

#include <stddef.h>
#include <stdint.h>

// What a thread does during a span.
enum penstock_component {
  PENSTOCK_READ = 0,  // read the bytes of a sample, from the request to the last byte
  // Load a sample: from the request for its bytes until the sample is in the batch. This includes
  // PENSTOCK_READ and all stages of the transform.
  PENSTOCK_LOAD = 1,
  PENSTOCK_DECODE = 2,     // decode a sample; detail: number of the stage in the transform, from 0
  PENSTOCK_TRANSFORM = 3,  // another stage of the transform, such as resizing; detail: as for PENSTOCK_DECODE
  PENSTOCK_TRAIN = 4,      // a step in the accelerator
  // One step with the waits before it: from the end of the previous step to the end of this step.
  PENSTOCK_ITERATION = 5,
  PENSTOCK_CHECKPOINT = 6,
  PENSTOCK_SHUFFLE = 7,     // make the random order of an epoch's samples
  PENSTOCK_WAIT = 8,        // wait for something; detail: enum penstock_wait
  PENSTOCK_VALIDATION = 9,  // a pass over the validation data
  PENSTOCK_COMPONENTS = 10  // number of components in this header
};

enum penstock_wait {
  PENSTOCK_WAIT_INPUT = 0,  // the accelerator waits for its batch
  PENSTOCK_WAIT_RANKS = 1,  // the accelerator waits for other ranks to end the step
  PENSTOCK_WAIT_ROOM = 2    // a worker waits for a free place in a batch
};

#define PENSTOCK_NO_EPOCH UINT32_MAX
#define PENSTOCK_NO_NUMBER UINT64_MAX

// One activity of one thread. Times are CLOCK_MONOTONIC of the thread's machine.
struct penstock_span {
  int64_t begin_ns;
  int64_t end_ns;      // at least begin_ns
  uint64_t number;     // number of the sample in its manifest, or of the step, from 0; or PENSTOCK_NO_NUMBER
  uint64_t bytes;      // bytes that were read or written; 0 if there are none or they are not counted
  uint32_t epoch;      // from 0; or PENSTOCK_NO_EPOCH
  uint32_t thread;     // gettid()
  uint16_t component;  // enum penstock_component
  uint16_t detail;     // its meaning depends on the component; 0 if the component has none
  uint32_t reserved;   // always 0
};

// Gives a span of the program to the profiler, which copies it to the session as a span of the calling
// thread. Any thread may call this. The function is null if the profiler's library is not in the process:
//
//   if (penstock_profile_span != NULL) penstock_profile_span(&span);
//
// Nothing is allocated on the program's heap. A lock may be taken in three cases: at the first recorded call
// of the thread, if the file needs a new block, or if the span of a step begins a new window. If a signal
// handler has interrupted the profiler in its own thread, the handler's span is not added, but counts as
// dropped.
#ifdef __cplusplus
extern "C" {
#endif
__attribute__((weak, visibility("default"))) void penstock_profile_span(const struct penstock_span* span);
#ifdef __cplusplus
}
#endif

#ifdef __cplusplus
static_assert(sizeof(penstock_span) == 48 && offsetof(penstock_span, epoch) == 32 &&
                  offsetof(penstock_span, component) == 40,
              "the layout of spans in files must not change");
#else
_Static_assert(sizeof(struct penstock_span) == 48, "the layout of spans in files must not change");
#endif

#endif
