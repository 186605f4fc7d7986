// The loader: worker threads that read samples and turn them into batches ahead of the training loop.
//
// Each worker takes the next samples in order and keeps up to `depth` reads in flight. It transforms each
// sample directly into its slot of the batch, without a further copy. Which samples a batch has does not
// depend on which worker or read was faster (batch_plan.hpp has the exact rules).
//
// Prefetch: K is the prefetch depth. The workers prepare at most K batches ahead; these may be complete or
// incomplete. A batch that next() returned belongs to the consumer until it calls next() again. So the loader
// needs the memory of K + 1 batches, and for each thread buffers for `depth` + 1 samples. If `depth` is 1, a
// thread has a buffer for one sample. With K = 0 nothing is prepared ahead: the workers read a sample of a
// batch only after next() was called for that batch.
//
// Time: a worker's time has these parts: `read` (including the wait for a read to complete), the transform's
// own stages, and the wait for a free slot in a batch. A worker reads the clock once at each change from one
// part to another. A stage is busy while its own part runs, starved while an earlier part runs, and blocked
// during later parts and the wait for a slot. So the three times of each stage always add up to the workers'
// time. When a worker has no more work, its wait for the end of the run is not counted.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "datagen/format/sample_opener.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/reading/sample_reader.hpp"
#include "datagen/reading/sampler.hpp"
#include "io_backends/backend/backend.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {

enum class BadSample : uint8_t {
  fail,  // the first bad sample ends the run: next() returns its error
  skip,  // a bad sample is counted and named, and another sample fills its slot
};

// What a loader needs. It borrows everything that a pointer points to: that must outlive the loader.
struct LoaderSettings {
  const Manifest* manifest = nullptr;
  Backend* backend = nullptr;
  const Transform* app_transform = nullptr;
  BatchPool* pool = nullptr;  // holds K + 1 batches; its shape is the shape of each batch
  Sampler sampler;
  PlanLimits limits;
  unsigned threads = 1;
  BadSample bad_sample = BadSample::fail;
  size_t depth = 1;                      // reads in flight for each thread
  std::chrono::nanoseconds patience{0};  // after this time without a new sample next() fails; 0: no limit
  // Has one buffer for the spans of each worker, and a last buffer for the spans in which the order of an
  // epoch is made. May be null.
  SpanLog* spans = nullptr;
  bool advises_skip = false;  // the error of a bad sample names --on-error skip
};

// Reads the samples of one worker. It needs no lock: only the worker's thread makes, uses and destroys it.
// Its destructor waits for the reads in flight or cancels them.
class SampleLoader {
 public:
  // Borrows all arguments. `depth` must be a depth that deep_queue() accepts; if not, the error is that of
  // deep_queue(). With `in_place`, samples are not copied but used in the memory of the back end (see
  // why_copied()).
  static Result<std::unique_ptr<SampleLoader>> make(const Manifest& manifest, Backend& backend,
                                                    HeldObjects& objects, size_t depth, bool in_place);

  // The memory for one sample that the worker asked for with request(), and the result of its read.
  struct Slot {
    Ticket ticket;
    std::string name;  // name of the object that contains the sample
    // `outcome` and `stored` are valid once next() has returned the slot. If `outcome` is success, the sample
    // is in `stored`. Otherwise `outcome` is an error that names the object or the sample's index.
    Result<void> outcome;
    StoredSample stored;

    // The members below are used only inside SampleLoader.
    std::string name_scratch;
    SampleList::Sample sample;
    std::span<std::byte> target;  // the part of stored.memory that the read fills
    bool in_flight = false;
    bool in_place = false;
  };

  size_t depth() const { return depth_; }
  // The number of samples that request() asked for and next() has not returned.
  size_t in_flight() const { return in_flight_; }
  // Asks for a sample. Its read starts in this call or in next(). Needs in_flight() < depth(). If the read
  // cannot start or memory runs out, next() returns that error as the outcome of the sample.
  void request(const Ticket& ticket);
  // Starts all reads that request() asked for, waits until one of them is complete, and returns its slot.
  // Needs in_flight() > 0. The slot is valid until the next call of next(); at a depth of 1 only until the
  // next request().
  // It may throw std::bad_alloc. If the outcome is the error `internal`, the queue is broken: call neither
  // request() nor next() after it.
  Slot& next();
  // Moves the sample from the slot that next() returned last into `other`. The slot gets the old memory of
  // `other` for later samples, unless the bytes are in place. The slot's outcome must be success. Bytes in
  // place stay valid as long as the HeldObjects and the Reader in `other` exist.
  void move_to(StoredSample& other);

 private:
  SampleLoader(const Manifest& manifest, Backend& backend, HeldObjects& objects, size_t depth, bool in_place);
  void set_free(uint32_t slot);
  Slot& fail_lost_sample();
  Result<void> locate(Slot& slot);
  void grow(Slot& slot) const;
  Result<uint64_t> find_in_place(uint32_t index);

  const Manifest& manifest_;
  const bool whole_objects_;
  const size_t depth_;
  const bool in_place_;
  std::vector<Slot> slots_;  // depth + 1, since the caller has one; 1 if the depth is 1
  std::vector<uint32_t> free_slots_;
  std::optional<uint32_t> unread_slot_;  // only at a depth of 1: the slot whose sample next() is to read
  // Reads that are complete but not returned; next() takes from the end.
  std::vector<Completion> completions_;
  size_t in_flight_ = 0;
  std::optional<uint32_t> returned_slot_;  // the slot that next() returned last
  SampleReader reader_;  // declared last, so destroyed first: a read in flight may still write to the slots
};

class BatchLoader final : public BatchSource {
 public:
  // Makes a loader and starts its workers. invalid_argument if an epoch has fewer samples than a batch.
  // exhausted if memory or threads run out.
  static Result<std::unique_ptr<BatchLoader>> make(const LoaderSettings& settings);
  // Stops the workers and waits for them without a limit (close() waits with a limit). Afterwards samples in
  // place are no longer valid.
  ~BatchLoader() override;

  // Only the consumer's thread may call next(), close(), make() and the destructor. Any thread may call the
  // others.
  bool close(std::chrono::nanoseconds patience) override;
  bool stalled() const override;
  Result<const Batch*> next() override;
  std::vector<StageTally> times() const override;
  LoaderLosses losses() const override;
  std::vector<LostTime> lost_times() const override;

 private:
  struct Worker {
    std::unique_ptr<SampleTransform> transform;
    std::optional<SampleOpener> opener;
    std::optional<SampleUnpacker> unpacker;  // if samples have forms
    std::unique_ptr<SampleLoader> reader;    // exists only while the worker's thread runs
    std::vector<Ticket> new_tickets;         // taken from the plan, their reads not requested yet
    std::vector<Ticket> pending_tickets;     // tickets whose outcome is not recorded yet; protected by mutex_
    StageTimer timer{1};
    PictureWarningCounts pictures;  // of samples whose outcome is not recorded yet
    // mutex_ protects the following three members.
    std::vector<uint64_t> spent_ns;  // time of each part of the timer, as copied by record_outcome()
    uint64_t waited_ns = 0;          // sum of the waits for a slot that have ended
    std::optional<StageTimer::Clock::time_point> waiting_since;  // set while the worker waits for a slot
  };

  explicit BatchLoader(const LoaderSettings& settings);
  bool in_place() const { return settings_.pool->shape().in_place; }
  void work(const std::stop_token& stop, Worker& worker);
  Result<void> serve(const std::stop_token& stop, Worker& worker);
  void wait_for_slot(std::unique_lock<std::mutex>& lock, const std::stop_token& stop, Worker& worker);
  bool take_tickets(Worker& worker);
  Result<void> fill_slot(Worker& worker, SampleLoader::Slot& sample);
  Result<void> transform(Worker& worker, const SampleLoader::Slot& sample, std::span<std::byte> tensor);
  Result<const Batch*> wait_for_batch(std::unique_lock<std::mutex>& lock);
  void fail_if_stalled(StageTimer::Clock::time_point waiting_since);
  std::vector<uint64_t> spent_ns(bool so_far) const;
  void account_wait(StageTimer::Clock::time_point since, const std::vector<uint64_t>& spent_before,
                    const Batch* batch);
  void record_outcome(Worker& worker, const Ticket& ticket, Result<void> outcome);

  const LoaderSettings settings_;
  HeldObjects objects_;
  std::vector<Worker> workers_;

  mutable std::mutex mutex_;                    // protects all members from here to threads_
  std::condition_variable_any work_available_;  // workers wait for a slot to fill, a failure or a stop
  // The consumer waits for a change of head() or for the end of a worker.
  std::condition_variable head_changed_;
  BatchPlan plan_;
  std::optional<Error> failure_;
  LoaderLosses bad_objects_;  // has only the names of bad objects; plan_ counts the samples
  bool stalled_ = false;
  size_t running_workers_ = 0;  // workers whose thread still runs or may use the back end
  StageTimer::Clock::time_point last_outcome_time_;  // when a worker last recorded an outcome
  // The workers' time while the consumer waited, in the form that spent_ns() returns: one entry for each part
  // of the timer, then the waits for a slot.
  std::vector<uint64_t> worked_ns_;
  uint64_t consumer_waited_ns_ = 0;  // how long the consumer waited until its batch was ready
  uint64_t woke_late_ns_ = 0;        // how long it then took until the consumer's thread ran again

  std::vector<std::jthread> threads_;  // declared last: joined before the members that they use are destroyed
};

}  // namespace penstock
