// What gives batches to the training loop, and reports what that cost.
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

// An object of which samples failed.
struct SkippedObject {
  std::string name;
  bool whole = true;          // it is one sample
  std::uint64_t samples = 1;  // each time that one failed
  std::uint64_t offset = 0;   // of the first of them in it
  std::string why;            // that one failed
};

// Of the sample with that index, which failed so.
SkippedObject skipped_object(const Manifest& manifest, std::uint64_t index, const Error& error);

// What was left out, so far.
struct LoaderLosses {
  std::uint64_t skipped = 0;         // samples that failed (each time that one did)
  std::uint64_t dropped_tail = 0;    // good samples that filled no batch
  std::vector<SkippedObject> named;  // the first kNamed that had such samples
  static constexpr std::size_t kNamed = 10;

  void add(const LoaderLosses& more);
  void name(const SkippedObject& object);
};

// Where the time of one stage went, in seconds summed over the threads that serve it: each second of such a
// thread is in exactly one of the three. Stages that share threads see each other's work as waiting: while a
// worker decodes, resizing is starved and reading is blocked.
struct StageTally {
  std::string stage;     // "read", "decode", "resize", "accelerator"
  double busy_s = 0;     // at work
  double starved_s = 0;  // waited for something to work on
  double blocked_s = 0;  // waited for room downstream

  double total_s() const { return busy_s + starved_s + blocked_s; }
};
// Of "read" and the transform's own stages. `spent_ns` has one entry for each of them, and the last one for
// what the threads waited for room after all of them.
std::vector<StageTally> stage_tallies(std::span<const std::string_view> stages,
                                      std::span<const std::uint64_t> spent_ns);

// What the consumer waited for in next(), in seconds. "read" and the transform's own stages: by the
// shares that they have in the samples which workers finished meanwhile. "collate": workers that had
// nothing to do while others were at the last samples of the batch, and copies. "queue": the batch was there,
// and the consumer had not woken up.
struct LostTime {
  std::string to;
  double seconds = 0;
};
// `worked_ns`: what the threads spent meanwhile, as in stage_tallies(); empty where no worker ended a part.
// `waited_ns` until the batch was ready, and `late_ns` from then on.
std::vector<LostTime> lost_by_stage(std::span<const std::string_view> stages,
                                    std::span<const std::uint64_t> worked_ns, std::uint64_t waited_ns,
                                    std::uint64_t late_ns);

// Hands out batches in a fixed order, whatever its own threads do. One thread calls next(). Destroying it
// asks its threads to stop, waits for the sample that each has in hand, and drops the rest. It does not wait
// for next() to be called.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  BatchSource() = default;
  BatchSource(const BatchSource&) = delete;
  BatchSource& operator=(const BatchSource&) = delete;

  // Waits for the next batch, which the caller may read until the next call; null at the end. After an error
  // or the end it returns the same again. Errc::interrupted within a tenth of a second once interrupted().
  virtual Result<const Batch*> next() = 0;

  // So far; any thread.
  virtual std::vector<StageTally> times() const = 0;
  virtual LoaderLosses losses() const = 0;
  // So far; all parts add up to what next() waited in all.
  virtual std::vector<LostTime> lost() const = 0;

  // Whole files that samples were taken out of, so far; 0 where they are read one by one.
  virtual std::uint64_t files_used() const { return 0; }

  // Stops the workers and waits until all have ended, or so long. False: a call into the back end does not
  // come back; the source and all that it was given must then outlive the process, which can only _exit().
  virtual bool close(std::chrono::nanoseconds patience) = 0;
  virtual bool stalled() const = 0;  // next() has run out of patience
};

}  // namespace penstock
