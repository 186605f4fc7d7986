// What the loops of baseline.hpp and ceiling.hpp read: the samples of a corpus in a given order, from a tier.
// It also has helpers for such loops.
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

// The samples, the back end and the order. If `whole_objects`, each sample is a whole object, and each read
// opens and closes it. Else samples are ranges of objects that are opened once.
struct ReadPlan {
  const SampleList& samples;
  Backend& backend;
  bool whole_objects = true;
  // The n-th read is of sample order(n), for n from 0 to size() - 1, and then again from the first. Empty:
  // the n-th read is of sample n. Use the order of the reader that is compared. Any thread.
  std::function<uint64_t(uint64_t n)> order;
};

// Readers of objects whose samples are ranges. The first objects of the corpus stay open, the others are
// opened for each read. Empty if samples are whole objects.
using OpenObjects = std::vector<std::unique_ptr<Reader>>;
Result<OpenObjects> open_objects(const ReadPlan& plan);

// The Reader of an object. If it is not held open, it is opened and put into `own_reader`. Any thread; each
// read has its own `own_reader`.
Result<Reader*> reader_of(const ReadPlan& plan, const OpenObjects& held, uint32_t object,
                          std::unique_ptr<Reader>& own_reader);

// The limits of a loop, which ends at the first that it reaches. Reads in flight are finished. SIGINT ends
// every loop.
struct LoopEnd {
  uint64_t first_read = 0;        // number of the first read (continues after an earlier repeat)
  uint64_t samples = UINT64_MAX;  // number of reads; for one cold pass: size()
  std::chrono::steady_clock::time_point deadline =  // end time, checked every few samples
      std::chrono::steady_clock::time_point::max();
};

// The result of a loop. The caller measures its time.
struct LoopDone {
  uint64_t samples = 0;
  uint64_t bytes = 0;
  // The time in which queues were made, before the first read. The caller subtracts it from its time.
  std::chrono::nanoseconds untimed{0};
};

// Whether loops may use system calls instead of the back end: it has native paths, and their files have the
// same bytes as its objects.
bool can_use_system_calls(const Backend& backend);
Result<Fd> open_root(const ReadPlan& plan);  // for open_object(); only if can_use_system_calls() is true
Result<Fd> open_object(int root, const char* name);
Result<void> read_whole(int fd, const SampleList::Sample& sample, std::byte* out, const char* name);

// Helper for a loop: gives sample numbers to its threads, checks its limits and keeps its first error.
class LoopControl {
 public:
  LoopControl(const ReadPlan& plan, const LoopEnd& end) : plan_(plan), end_(end) {}

  // Sets `sample` to the next sample. False when the loop ends. Any thread.
  bool next(SampleList::Sample& sample);
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
