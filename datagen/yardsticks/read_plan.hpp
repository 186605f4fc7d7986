// What the loops of baseline.hpp and ceiling.hpp read: the samples of a corpus, in an order, through a tier.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <vector>

#include "datagen/sample/sample_list.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/system/fd.hpp"

namespace penstock {

// `whole_objects`: each sample is the whole of an object, so that reading it opens, reads and closes; else
// samples are ranges of objects that are opened once.
struct ReadPlan {
  const SampleList& samples;
  Backend& backend;
  bool whole_objects = true;
  // The n-th read is of sample order(n), for n from 0 to size() - 1 and round again; empty: n itself. Give
  // the loops the order that the measured reader has. Any thread.
  std::function<std::uint64_t(std::uint64_t n)> order;
};

// Readers for samples that are ranges of objects: the first objects stay open, others are opened for each
// read. None where samples are whole objects.
using OpenObjects = std::vector<std::unique_ptr<Reader>>;
Result<OpenObjects> open_objects(const ReadPlan& plan);

// The object's reader, put into `own` where it is not held. Any thread, each read with its own `own`.
Result<Reader*> reader_of(const ReadPlan& plan, const OpenObjects& held, std::uint32_t object,
                          std::unique_ptr<Reader>& own);

// When a loop ends, whichever comes first. Each read that was started is finished. SIGINT ends every loop.
struct LoopEnd {
  std::uint64_t first = 0;                    // number of the first read (goes on from an earlier repeat)
  std::uint64_t samples = UINT64_MAX;         // reads in all; a cold pass gives size()
  std::chrono::steady_clock::time_point at =  // looked at now and then
      std::chrono::steady_clock::time_point::max();
};

// What a loop did. It does not say how long it took: whoever calls it measures that.
struct LoopDone {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  // Of that time, what went into making queues before the first read: no part of reading.
  std::chrono::nanoseconds untimed{0};
};

// Whether loops may go past the back end: it has native paths and these give what it gives.
bool by_system_calls(const Backend& backend);
Result<Fd> open_root(const ReadPlan& plan);  // for open_object(), of such a back end
Result<Fd> open_object(int root, const char* name);
Result<void> read_whole(int fd, const SampleList::Sample& sample, std::byte* out, const char* name);

// For those who write loops: hands sample numbers to the threads of one loop, keeps its end and its first
// error.
class LoopControl {
 public:
  LoopControl(const ReadPlan& plan, const LoopEnd& end) : plan_(plan), end_(end) {}

  // The next sample to read in `sample`; false when the loop ends. Any thread.
  bool next(SampleList::Sample& sample);
  void fail(Error error);

  // Runs `body(done, thread)` on `threads` threads (the caller's is one) and adds up what they did.
  Result<LoopDone> run(unsigned threads, const std::function<Result<void>(LoopDone&, unsigned)>& body);

 private:
  const ReadPlan& plan_;
  const LoopEnd& end_;
  std::atomic<std::uint64_t> next_{0};
  std::atomic<bool> over_{false};
  std::mutex mutex_;
  Result<void> failed_;
};

}  // namespace penstock
