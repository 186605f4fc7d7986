// The loader: worker threads that turn samples into batches, at most K batches ahead of the consumer.
//
// Each worker takes the next samples in order, keeps up to `depth` reads of them in flight, and transforms
// each sample directly into its slot of the batch. There is no copy and no collating step. The composition
// of a batch does not depend on which worker or read was faster (batch_plan.hpp has the exact rules).
//
// Prefetch. At most K batches, the prefetch depth, are open or ready and not handed over. next() hands a
// batch over. From then on it belongs to the accelerator, until next() is called again. So the memory is K +
// 1 batches, and for each thread buffers for `depth` + 1 samples. K = 0: no stage runs ahead. The workers
// touch no sample of batch n + 1 before next() asks for it, after step n has ended.
//
// Time. A worker's time is divided into `read` (with the wait for a read), the transform's own stages, and
// the wait for a place in an open batch. The clock is read once at each change. For each stage, the time of
// the stages before it counts as starved, that of the stages after it and of the wait for a place as
// blocked. So the three times of a stage always add up to the workers' time. The wait for the end of the run
// is not counted.
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
#include "io_backends/backend/buffer.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {

enum class BadSample : std::uint8_t {
  fail,  // the first bad sample ends the run: next() returns its error
  skip,  // a bad sample is counted and named, and another one takes its slot
};

// What the pointers point to is borrowed: all of it must outlive the loader.
struct LoaderSettings {
  const Manifest* manifest = nullptr;
  Backend* backend = nullptr;
  const Transform* app_transform = nullptr;
  BatchPool* pool = nullptr;  // its shape is the batch, its size K + 1
  Sampler sampler;
  PlanLimits limits;
  unsigned threads = 1;
  BadSample bad_sample = BadSample::fail;
  std::size_t depth = 1;                 // reads in flight for each thread
  std::chrono::nanoseconds patience{0};  // next() fails if no sample came in this time; 0: waits for ever
  SpanLog* spans = nullptr;  // one buffer for the spans of each worker, and after them one for the order of
                             // epochs
};

// Reads the samples of one worker: a SampleReader whose samples are tickets of batches. One thread, from
// make() to the end (SampleReader). Destroyed with samples in flight, it waits for them or cuts them
// off.
class TicketReader {
 public:
  // Borrows all of it. `depth`: as deep_queue() accepts it, whose errors it returns. `in_place`: bytes are
  // not read into memory, but used where the back end has them; see why_copied().
  static Result<std::unique_ptr<TicketReader>> make(const Manifest& manifest, Backend& backend,
                                                    HeldObjects& objects, std::size_t depth, bool in_place);

  // One sample that was asked for.
  struct Slot {
    Ticket ticket;
    std::string name;  // of its object
    // From next() on: the sample, in the buffer or in place, or why it could not be read; an error names the
    // object.
    Result<std::span<const std::byte>> bytes = std::span<const std::byte>();

    // The reader's own.
    std::string name_scratch;
    SampleList::Sample sample;
    std::span<std::byte> room;  // in the buffer
    bool on_its_way = false;
    Buffer buffer;
    bool in_place = false;
  };

  std::size_t depth() const { return depth_; }
  std::size_t on_their_way() const { return on_their_way_; }  // started, and not returned by next() yet
  // Needs on_their_way() < depth(). Starts at once or with next(). Failures come with next(), too.
  void begin(const Ticket& ticket);
  // Needs on_their_way() > 0. Starts all samples for which begin() was called, and waits for one, which stays
  // until the next call, at a depth of 1 until begin(). An error of kind `internal` means that the queue is
  // broken: then nothing may be started any more.
  Slot& next();
  // Gives the bytes of the sample that next() returned to `other`, with their memory or Reader, and takes its
  // memory for later samples. There must be bytes. Those in place stay as long as the HeldObjects and the
  // Reader in `other`.
  void give(StoredSample& other);

 private:
  TicketReader(const Manifest& manifest, Backend& backend, HeldObjects& objects, std::size_t depth,
               bool in_place);
  void set_free(std::uint32_t slot);
  Slot& broken();
  Result<void> choose(Slot& slot);
  void grow(Slot& slot) const;
  Result<std::uint64_t> inspect(std::uint32_t place);

  const Manifest& manifest_;
  const bool whole_objects_;
  const std::size_t depth_;
  const bool in_place_;
  std::vector<Slot> slots_;  // one more than the depth, for the caller; a single one at a depth of 1
  std::vector<std::uint32_t> free_;
  std::optional<std::uint32_t> waiting_;  // at a depth of 1: what next() reads or inspects
  std::vector<Completion> completions_;   // reaped, the first last
  std::size_t on_their_way_ = 0;
  std::optional<std::uint32_t> lent_;  // the slot whose bytes the caller has
  SampleReader reader_;                // last, so destroyed first: a read may still write to the slots
};

class BatchLoader final : public BatchSource {
 public:
  // Starts the workers. invalid_argument when the sampler's epoch is smaller than a batch.
  static Result<std::unique_ptr<BatchLoader>> make(const LoaderSettings& settings);
  // Waits for the workers without a limit: see close(). After it, batches have no bytes in place any more.
  ~BatchLoader() override;

  bool close(std::chrono::nanoseconds patience) override;
  bool stalled() const override;
  Result<const Batch*> next() override;
  std::vector<StageTally> times() const override;
  LoaderLosses losses() const override;
  std::vector<LostTime> lost() const override;

 private:
  struct Worker {
    std::unique_ptr<SampleTransform> transform;
    std::optional<SampleOpener> opener;
    std::unique_ptr<TicketReader> reader;  // while its thread lives
    std::vector<Ticket> taken;             // to be started
    std::vector<Ticket> asked;             // started and not settled; under the mutex
    StageTimer timer{1};
    // The next three under the mutex.
    std::vector<std::uint64_t> spent_ns;                         // by part of the timer, at settle()
    std::uint64_t waited_ns = 0;                                 // for a place in a batch
    std::optional<StageTimer::Clock::time_point> waiting_since;  // set while it waits for one
  };

  explicit BatchLoader(const LoaderSettings& settings);
  bool in_place() const { return settings_.pool->shape().in_place; }
  void work(const std::stop_token& stop, Worker& worker);
  Result<void> serve(const std::stop_token& stop, Worker& worker);
  void wait_for_room(std::unique_lock<std::mutex>& lock, const std::stop_token& stop, Worker& worker);
  bool take(Worker& worker);
  Result<void> fill(Worker& worker, TicketReader::Slot& sample);
  Result<void> transform(Worker& worker, const TicketReader::Slot& sample, std::span<std::byte> room);
  Result<const Batch*> pull(std::unique_lock<std::mutex>& lock);
  void check_progress(StageTimer::Clock::time_point waiting_since);
  std::vector<std::uint64_t> spent_ns(bool so_far) const;
  void account_wait(StageTimer::Clock::time_point since, const std::vector<std::uint64_t>& before,
                    const Batch* got);
  void settle(Worker& worker, const Ticket& ticket, Result<void> outcome);

  const LoaderSettings settings_;
  HeldObjects objects_;
  std::vector<Worker> workers_;

  mutable std::mutex mutex_;                // of all members below, up to threads_
  std::condition_variable_any work_there_;  // the workers wait for it
  std::condition_variable head_moved_;      // the consumer waits for it
  BatchPlan plan_;
  std::optional<Error> failure_;
  LoaderLosses named_;  // only the names; plan_ counts
  bool stalled_ = false;
  std::size_t working_ = 0;                    // workers that have not ended
  StageTimer::Clock::time_point last_sample_;  // when the last one was settled
  std::vector<std::uint64_t> worked_ns_;  // by stage, and of workers without work, while the consumer waited
  std::uint64_t consumer_waited_ns_ = 0;  // until its batch was ready
  std::uint64_t woke_late_ns_ = 0;        // from then until it ran again

  std::vector<std::jthread> threads_;  // last: joined before what they use is destroyed
};

}  // namespace penstock
