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

#include "datagen/codec/picture_warnings.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/batch.hpp"

namespace penstock {

// An object that has samples which could not be loaded.
struct SkippedObject {
  std::string name;
  bool is_one_sample = true;  // false: the object has several samples
  uint64_t samples = 1;       // failures of its samples; a sample may fail once in each epoch
  uint64_t offset = 0;        // bytes before the first bad sample in the object
  std::string why;            // why the first bad sample failed
};

// Makes the entry for a failed sample. `index` is the sample's index in the manifest, `error` its failure.
SkippedObject skipped_object(const Manifest& manifest, uint64_t index, const Error& error);

// How many samples are in no batch so far, and why; and how many have warnings of the picture decoder.
struct LoaderLosses {
  uint64_t skipped = 0;              // failures of samples; a sample may fail once in each epoch
  uint64_t dropped_tail = 0;         // good samples that filled no batch
  std::vector<SkippedObject> named;  // the first kMostNamed objects with failed samples
  PictureWarningCounts pictures{};
  static constexpr size_t kMostNamed = 10;

  void add(const LoaderLosses& more);
  void name(const SkippedObject& object);
  // Warnings for the user: one line for each of the first kMostNamed objects, and one for all others.
  std::vector<std::string> warnings() const;
};

// How one stage of the pipeline spent the time of its threads, in seconds summed over the threads. Each
// second of a thread is busy, starved or blocked for the stage. If the stages share threads, a stage waits
// while its thread works for another stage: while a worker decodes, the later stage "resize" is starved and
// the earlier stage "read" is blocked.
struct StageTally {
  std::string stage;     // "read", "decode", "resize", "accelerator"
  double busy_s = 0;     // time that the stage worked
  double starved_s = 0;  // time that it waited for input
  double blocked_s = 0;  // time that it waited for free space in the next stage

  double total_s() const { return busy_s + starved_s + blocked_s; }
};
// Makes the tallies of the stage "read" and of the transform's own stages. `spent_ns` has an entry for each
// of these stages: the threads' time in it. One more entry at the end is the threads' wait for a free slot.
std::vector<StageTally> stage_tallies(std::span<const std::string_view> stages,
                                      std::span<const uint64_t> spent_ns);

// One cause why the consumer waited in next(), with the seconds that it cost. The causes are:
//  - "read" and each stage of the transform: the workers were busy with it. The time of the wait is divided
//    among these causes and "collate", in proportion to the workers' time for each of them.
//  - "collate": some workers had no work while others loaded the last samples of the batch. In FileBatches
//    and MemoryBatches also the time in which samples are copied into a batch.
//  - "queue": the batch was ready, but the consumer's thread had not run yet. Also the waits, if no worker
//    finished a part of its work during any of them.
struct LostTime {
  std::string cause;
  double seconds = 0;
};
// Divides the time that the consumer waited among the causes of its waits. The arguments are sums over all
// waits:
//  - `worked_ns`: the threads' time in each stage during the waits, in the same order as `spent_ns` of
//    stage_tallies(). Empty if the consumer has not waited.
//  - `waited_ns`: the time until the batch was ready.
//  - `late_ns`: the time from then until the consumer's thread ran.
std::vector<LostTime> lost_by_stage(std::span<const std::string_view> stages,
                                    std::span<const uint64_t> worked_ns, uint64_t waited_ns,
                                    uint64_t late_ns);

// Hands out batches in a fixed order, whatever the timing of its own threads. Only one thread, the consumer,
// may make it, call next() and close(), and destroy it. The destructor asks the threads to stop, waits
// without a limit for the reads in flight, and drops all samples that are not handed out. A worker that waits
// for a free slot ends at once.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Waits for the next batch and returns it; the caller may read it until it calls next() again. Returns null
  // at the end. After an error or the end, every further call returns the same result. (FileBatches may also
  // return null between two epochs.) It may allocate. Called by the consumer, which holds no lock. A signal
  // does not interrupt the wait. So next() tests interrupted() while it waits, and returns Errc::interrupted
  // within 100 ms.
  virtual Result<const Batch*> next() = 0;

  // times(), losses() and lost_times() return sums since the start, and allocate. Any thread may call
  // times(). Only the consumer may call losses() and lost_times(), unless a derived class allows more.
  virtual std::vector<StageTally> times() const = 0;
  virtual LoaderLosses losses() const = 0;
  // The waits of next() by cause. Their sum is the whole time that next() waited.
  virtual std::vector<LostTime> lost_times() const = 0;

  // How many whole files this source has loaded and used so far. 0 for a source that reads samples one by
  // one.
  virtual uint64_t files_used() const { return 0; }

  // Asks the workers to stop and waits for them, at most for `patience`. Called by the consumer.
  // Returns false if a worker is still inside a call of the back end. Then the source and everything that it
  // borrows must exist until the process ends, and the process must end by _exit(): a destructor would wait
  // for that worker.
  virtual bool close(std::chrono::nanoseconds patience) = 0;
  virtual bool stalled() const = 0;  // true if next() failed because no sample came for too long
};

}  // namespace penstock
