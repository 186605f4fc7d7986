// Spans: what a thread of a program did for some time, as the program tells it. A part of the format of
// sessions (session_abi.h), and what programs of our own keep of themselves (profiling/spans).
#ifndef PENSTOCK_PROFILING_SPAN_ABI_H
#define PENSTOCK_PROFILING_SPAN_ABI_H

#include <stddef.h>
#include <stdint.h>

// What a thread did.
enum penstock_component {
  PENSTOCK_READ = 0,  // bytes of a sample, from asking for them to having them
  PENSTOCK_LOAD =
      1,  // a sample, from asking for its bytes to its place in the batch: the read and all that follows
  PENSTOCK_DECODE = 2,     // detail: which stage of the transform, counting from 0
  PENSTOCK_TRANSFORM = 3,  // any other stage of it, as resizing; detail: as above
  PENSTOCK_TRAIN = 4,      // a step in the accelerator
  PENSTOCK_ITERATION = 5,  // from the end of a step to the end of the next: waits and the step
  PENSTOCK_CHECKPOINT = 6,
  PENSTOCK_SHUFFLE = 7,     // the order of an epoch was made
  PENSTOCK_WAIT = 8,        // detail: enum penstock_wait
  PENSTOCK_VALIDATION = 9,  // a pass over data that are not trained on
  PENSTOCK_COMPONENTS = 10  // how many this header knows
};

enum penstock_wait {
  PENSTOCK_WAIT_INPUT = 0,  // the accelerator, for its batch
  PENSTOCK_WAIT_RANKS = 1,  // the accelerator, for other ranks to end the step
  PENSTOCK_WAIT_ROOM = 2    // a worker, for a place in a batch
};

#define PENSTOCK_NO_EPOCH UINT32_MAX
#define PENSTOCK_NO_NUMBER UINT64_MAX

// One thread did one thing for some time. Times are CLOCK_MONOTONIC of its machine.
struct penstock_span {
  int64_t begin_ns;
  int64_t end_ns;   // not before begin_ns
  uint64_t number;  // of the sample in its manifest, or of the step, counting from 0; or PENSTOCK_NO_NUMBER
  uint64_t bytes;   // that were moved; 0 if none were, or if they are not counted
  uint32_t epoch;   // counting from 0; or PENSTOCK_NO_EPOCH
  uint32_t thread;  // as gettid() says
  uint16_t component;  // enum penstock_component
  uint16_t detail;     // by component; else 0
  uint32_t reserved;   // 0
};

// A program that has spans of its own gives them to the profiler if it runs under it; otherwise this is null:
//
//   if (penstock_profile_span != NULL) penstock_profile_span(&span);
//
// The span is copied to the session, as one of the calling thread's. Nothing is allocated on the program's
// heap. A lock is taken only for a new block of the file, and where a step's span begins a new window.
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
              "spans are in files");
#else
_Static_assert(sizeof(struct penstock_span) == 48, "spans are in files");
#endif

#endif
