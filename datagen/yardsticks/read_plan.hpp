// What the loops of baseline.hpp and ceiling.hpp read: the samples of a corpus, in an order, through a tier.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// Object names and the samples in them, compactly: 24 bytes a sample and the names themselves. Built by one
// thread, then read by any.
class SampleList {
 public:
  struct Sample {
    std::uint64_t offset = 0;
    std::uint64_t length = 0;
    std::uint32_t object = 0;
  };

  std::uint32_t add_object(std::string_view name);
  void add_sample(const Sample& sample) { samples_.push_back(sample); }

  // A whole object as one sample.
  void add(std::string_view name, std::uint64_t bytes) { add_sample({0, bytes, add_object(name)}); }

  std::uint64_t size() const { return samples_.size(); }
  std::uint64_t objects() const { return starts_.size(); }
  const Sample& operator[](std::uint64_t i) const { return samples_[i]; }
  // Asks for what [i] and, where samples are whole objects, its name look at: a long list is in no cache.
  void prefetch(std::uint64_t i) const {
    __builtin_prefetch(samples_.data() + i);
    if (i < starts_.size()) __builtin_prefetch(starts_.data() + i);
  }
  // A zero follows it, so that its data() is a C string.
  std::string_view name(std::uint32_t object) const {
    const std::uint64_t end = object + 1 < starts_.size() ? starts_[object + 1] : names_.size();
    return {names_.data() + starts_[object], end - starts_[object] - 1};
  }
  SampleList part(std::uint64_t begin, std::uint64_t end) const;  // those samples and the objects they lie in
  std::uint64_t bytes() const;
  std::uint64_t largest() const;

 private:
  std::vector<char> names_;
  std::vector<std::uint64_t> starts_;
  std::vector<Sample> samples_;
};

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

// How many of so many objects a loop may hold open: a quarter of the descriptors that this process may have.
std::uint64_t objects_held_open(std::uint64_t objects);

// Readers for samples that are ranges of objects: the first objects stay open, others are opened for each
// read.
class OpenObjects {
 public:
  static Result<OpenObjects> open(const ReadPlan& plan);  // holds none where samples are whole objects

  // The object's reader, put into `own` where it is not held. Any thread, each read with its own `own`.
  Result<Reader*> get(std::uint32_t object, std::unique_ptr<Reader>& own) const;

  std::size_t held() const { return readers_.size(); }
  Reader& operator[](std::size_t i) const { return *readers_[i]; }  // i < held()

 private:
  explicit OpenObjects(const ReadPlan& plan) : plan_(&plan) {}
  const ReadPlan* plan_;
  std::vector<std::unique_ptr<Reader>> readers_;
};

// When a loop ends, whichever comes first. Each read that was begun is finished. SIGINT ends every loop.
struct LoopEnd {
  std::uint64_t first = 0;                    // number of the first read (goes on from an earlier lap)
  std::uint64_t samples = UINT64_MAX;         // reads in all; a cold pass gives size()
  std::chrono::steady_clock::time_point at =  // looked at now and then
      std::chrono::steady_clock::time_point::max();
  const std::atomic<bool>* stop = nullptr;
};

// What a loop did. It does not say how long it took: whoever calls it measures that.
struct LoopDone {
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;
  // Of that time, what went into making queues before the first read: no part of reading.
  std::chrono::nanoseconds beside{0};
};

// Whether loops may go past the back end: it has native paths and these give what it gives.
bool by_system_calls(const Backend& backend);

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
