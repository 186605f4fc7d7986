// What the loops of baseline.hpp and ceiling.hpp read: the samples of a corpus in a given order, from a tier.
// This file also has helpers for these loops.
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

// What a loop reads: samples, back end and order. With `whole_objects`, each sample is a whole object, and
// each read opens and closes it. Otherwise, samples are ranges of objects, and max_open_objects() of the
// objects stay open.
struct ReadPlan {
  const SampleList& samples;
  Backend& backend;
  bool whole_objects = true;
  // Returns the number of the sample for read `n`. n goes from 0 to samples.size() - 1, and then again from
  // 0. If the function is empty, read n is of sample n. The order must be that of the reader that is compared
  // with the loop. Any thread may call the function.
  std::function<uint64_t(uint64_t n)> order;
};

// The Readers of open objects, if samples are ranges of objects: entry i is for object i. If there are more
// objects than max_open_objects() allows, only the first have an entry, and the others are opened anew for
// each read. Empty if samples are whole objects.
using OpenObjects = std::vector<std::unique_ptr<Reader>>;
Result<OpenObjects> open_objects(const ReadPlan& plan);

// The Reader of an object. If `held` has none, the object is opened and its Reader is put into `own_reader`.
// Any thread may call it; each read has an `own_reader` of its own.
Result<Reader*> reader_of(const ReadPlan& plan, const OpenObjects& held, uint32_t object,
                          std::unique_ptr<Reader>& own_reader);

// When a loop ends: after `samples` reads or at `deadline`, whichever is first. Reads in flight are finished.
// SIGINT (Ctrl-C) ends every loop.
struct LoopEnd {
  // Number of the first read. With it, a loop continues after the reads of an earlier loop.
  uint64_t first_read = 0;
  uint64_t samples = UINT64_MAX;                    // number of reads; for one cold pass, the list's size()
  std::chrono::steady_clock::time_point deadline =  // end time, checked every few samples
      std::chrono::steady_clock::time_point::max();
};

// The result of a loop. The caller measures how long the loop takes.
struct LoopDone {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  // The time before the first read in which objects were opened and queues made. The caller subtracts it from
  // the time that it measured.
  std::chrono::nanoseconds queue_setup_time{0};
};

// Whether loops may use system calls instead of the back end. The back end must have native paths. It must
// neither be emulated nor bypass the page cache, because plain system calls would read in another way.
bool can_use_system_calls(const Backend& backend);
// Opens the root folder, for open_object(); may only be called if can_use_system_calls() is true.
Result<Fd> open_root(const ReadPlan& plan);
Result<Fd> open_object(int root, const char* name);
Result<void> read_whole(int fd, const SampleList::Sample& sample, std::byte* out, const char* name);

// Helps a loop with several threads: gives them samples to read, checks the limits and keeps the first error.
class LoopControl {
 public:
  LoopControl(const ReadPlan& plan, const LoopEnd& end) : plan_(plan), end_(end) {}

  // Sets `sample` to the next sample to read, and `index` to its number in the list. Returns false when the
  // loop must end. Any thread may call it.
  bool next(SampleList::Sample& sample, uint64_t* index = nullptr);
  void fail(Error error);

  // Runs `body(done, thread)` on `threads` threads, one of which is the caller's, and adds up their results.
  Result<LoopDone> run(unsigned threads, const std::function<Result<void>(LoopDone&, unsigned)>& body);

 private:
  const ReadPlan& plan_;
  const LoopEnd& end_;
  std::atomic<uint64_t> next_read_{0};
  std::atomic<bool> ended_{false};
  std::mutex mutex_;
  Result<void> first_error_;
};

}  // namespace penstock
