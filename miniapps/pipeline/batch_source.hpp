// The interface from which the training loop gets its batches. It also reports how long the loop waited and
// why.
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

// An object that has samples which could not be loaded.
struct SkippedObject {
  std::string name;
  bool is_one_sample = true;  // false: the object contains several samples
  uint64_t samples = 1;       // failures of its samples; a sample may fail once in each epoch
  uint64_t offset = 0;        // bytes before the first bad sample in the object
  std::string why;            // why the first bad sample failed
};

// Makes the entry for a failed sample. `index` is the sample's index in the manifest, `error` its failure.
SkippedObject skipped_object(const Manifest& manifest, uint64_t index, const Error& error);

// How many samples are in no batch so far, and why.
struct LoaderLosses {
  uint64_t skipped = 0;              // failures of samples; a sample may fail once in each epoch
  uint64_t dropped_tail = 0;         // good samples that filled no batch
  std::vector<SkippedObject> named;  // the first kMostNamed objects with failed samples
  static constexpr size_t kMostNamed = 10;

  void add(const LoaderLosses& more);
  void name(const SkippedObject& object);
  // Warnings for the user: one line for each object, since a damaged shard may have many bad samples.
  std::vector<std::string> warnings() const;
};

// How one stage spent the time of its threads, in seconds summed over the threads. Each second of a thread is
// busy, starved or blocked. If stages share threads, the work of one stage counts as waiting for the others:
// while a worker decodes, resizing is starved and reading is blocked.
struct StageTally {
  std::string stage;     // "read", "decode", "resize", "accelerator"
  double busy_s = 0;     // time that the stage worked
  double starved_s = 0;  // time that it waited for input
  double blocked_s = 0;  // time that it waited for free space in the next stage

  double total_s() const { return busy_s + starved_s + blocked_s; }
};
// Makes the tallies of the stage "read" and of the transform's own stages. `spent_ns` has the threads' time
// in each of these stages, and as its last entry their wait for a free slot.
std::vector<StageTally> stage_tallies(std::span<const std::string_view> stages,
                                      std::span<const uint64_t> spent_ns);

// One cause why the consumer waited in next(), with the seconds that it cost. The causes are:
//  - "read" and each stage of the transform: the workers were busy with it. The wait is divided in proportion
//    to their time in each stage during the wait.
//  - "collate": workers had no work while others loaded the last samples of the batch. The time to copy
//    samples into a batch counts here too (FileBatches, MemoryBatches).
//  - "queue": the batch was ready, but the consumer's thread had not run yet.
struct LostTime {
  std::string cause;
  double seconds = 0;
};
// Divides the consumer's waits by cause. `worked_ns`: the threads' time during the waits, as `spent_ns` of
// stage_tallies(); empty if no worker finished a part. `waited_ns`: the waits until the batch was ready.
// `late_ns`: the waits after that, until the consumer's thread ran.
std::vector<LostTime> lost_by_stage(std::span<const std::string_view> stages,
                                    std::span<const uint64_t> worked_ns, uint64_t waited_ns,
                                    uint64_t late_ns);

// Hands out batches in a fixed order, whatever the timing of its own threads. Only one thread, the consumer,
// may make it, call next() and close(), and destroy it. The destructor asks the threads to stop, waits
// without a limit for the reads in flight, and drops all other samples. A worker that waits for a free slot
// does not delay it.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Waits for the next batch, which the caller may read until it calls next() again. Null at the end. After
  // an error or the end, every further call returns the same. Called by the consumer, which holds no lock. A
  // signal does not end the wait by itself: while it waits, next() tests interrupted(), and returns
  // Errc::interrupted within 100 ms. It may allocate.
  virtual Result<const Batch*> next() = 0;

  // The sums since the start. Any thread may call times(). Only the consumer may call losses() and
  // lost_times(), unless a class allows more. All three allocate.
  virtual std::vector<StageTally> times() const = 0;
  virtual LoaderLosses losses() const = 0;
  // The waits of next() by cause. Together they are the whole time that next() waited.
  virtual std::vector<LostTime> lost_times() const = 0;

  // How many whole files had samples that were used, so far. It is 0 if samples are read one by one.
  virtual uint64_t files_used() const { return 0; }

  // Asks the workers to stop and waits for them, at most for `patience`. Called by the consumer. False: a
  // worker is still inside a call of the back end. Then the source and everything that it borrows must exist
  // until the process ends, and the process must end by _exit(): a destructor would wait for that worker.
  virtual bool close(std::chrono::nanoseconds patience) = 0;
  virtual bool stalled() const = 0;  // true if next() failed because no sample came for too long
};

}  // namespace penstock
