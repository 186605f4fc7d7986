// Gives batches to the training loop, and reports how long the loop waited for them and why.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/batch.hpp"

namespace penstock {

// An object in which samples failed.
struct SkippedObject {
  std::string name;
  bool is_one_sample = true;  // the object is one sample
  uint64_t samples = 1;       // how often its samples failed; each may fail once an epoch
  uint64_t offset = 0;        // bytes before the first bad sample in the object
  std::string why;            // why that sample failed
};

// Describes a failed sample: `index` is its index in the manifest, `error` its failure.
SkippedObject skipped_object(const Manifest& manifest, uint64_t index, const Error& error);

// The samples that no batch contains, so far.
struct LoaderLosses {
  uint64_t skipped = 0;              // how often samples failed; each may fail once an epoch
  uint64_t dropped_tail = 0;         // good samples that filled no batch
  std::vector<SkippedObject> named;  // the first kMostNamed objects with failed samples
  static constexpr size_t kMostNamed = 10;

  void add(const LoaderLosses& more);
  void name(const SkippedObject& object);
  // Warnings for the user, one line for each object: a damaged shard may have many bad samples.
  std::vector<std::string> warnings() const;
};

// How one stage spent the time of its threads, in seconds summed over them. Each second of a thread is in
// exactly one of the three parts. Stages that share threads count each other's work as waiting: while a
// worker decodes, resizing is starved and reading is blocked.
struct StageTally {
  std::string stage;     // "read", "decode", "resize", "accelerator"
  double busy_s = 0;     // time that the stage worked
  double starved_s = 0;  // time that it waited for input
  double blocked_s = 0;  // time that it waited for free space in the next stage

  double total_s() const { return busy_s + starved_s + blocked_s; }
};
// Makes the tallies of "read" and of the transform's own stages. `spent_ns` has one entry for each of them,
// and a last one for the threads' wait for a free slot.
std::vector<StageTally> stage_tallies(std::span<const std::string_view> stages,
                                      std::span<const uint64_t> spent_ns);

// The time that the consumer waited in next(), in seconds, divided by cause. "read" and the transform's own
// stages: in proportion to their share of the workers' time during the wait. "collate": workers had no work
// while others loaded the last samples of the batch; also the time to copy samples into a batch (FileBatches,
// MemoryBatches). "queue": the batch was ready, and the consumer's thread had not run yet.
struct LostTime {
  std::string cause;
  double seconds = 0;
};
// `worked_ns`: the threads' time during the waits, as in stage_tallies(); empty if no worker finished a part.
// `waited_ns`: the wait until the batch was ready. `late_ns`: the wait after that.
std::vector<LostTime> lost_by_stage(std::span<const std::string_view> stages,
                                    std::span<const uint64_t> worked_ns, uint64_t waited_ns,
                                    uint64_t late_ns);

// Hands out batches in a fixed order, whatever the timing of its own threads. One thread, the consumer, makes
// it, calls next() and close(), and destroys it. The destructor asks the threads to stop, waits without a
// limit for the reads in flight, and drops all other samples. A waiting worker does not block it.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // By the consumer, without any lock. Waits for the next batch, which the caller may read until it calls
  // next() again. Null at the end. After an error or the end, every further call returns the same. A signal
  // does not end the wait by itself: while it waits, next() tests interrupted(), and returns
  // Errc::interrupted within 100 ms. It may allocate.
  virtual Result<const Batch*> next() = 0;

  // Values so far. Any thread may call times(). losses() and lost_times() belong to the consumer, unless a
  // class allows more. All allocate.
  virtual std::vector<StageTally> times() const = 0;
  virtual LoaderLosses losses() const = 0;
  // The parts add up to the whole time that next() waited.
  virtual std::vector<LostTime> lost_times() const = 0;

  // Whole files whose samples were used, so far; 0 if samples are read one by one.
  virtual uint64_t files_used() const { return 0; }

  // By the consumer. Asks the workers to stop and waits for them, at most for `patience`. False: a worker is
  // still inside a call of the back end. Then the source and everything that it borrows must exist until the
  // process ends, and the process must end by _exit().
  virtual bool close(std::chrono::nanoseconds patience) = 0;
  virtual bool stalled() const = 0;  // next() failed because no sample came within the patience
};

}  // namespace penstock
