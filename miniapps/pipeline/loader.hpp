// The loader: worker threads that turn samples into batches, at most K batches ahead of whoever pulls.
//
// Each worker takes the next samples in order, keeps up to `depth` reads of them on their way, and transforms
// what comes straight into its slot of the batch: there is no copy and no collating step, and the composition
// of a batch does not depend on which worker or read was faster (batch_plan.hpp states it exactly).
//
// Prefetch. Batches that are ready or in the making, and not yet handed over, are at most K, the prefetch
// depth. A batch is handed over when next() returns it; from then on it is the accelerator's, until next() is
// called again. So during a step up to K batches are worked on or wait, and the memory is K + 1 batches (and
// what reads go to: a sample more than `depth`, a thread). K = 0: no stage runs ahead; the workers touch no
// sample of batch n + 1 before next() asks for it, which is after step n ended.
//
// Time. A worker's day is divided among `read` (waiting for one included), the transform's own stages, and
// waiting for a place in an open batch, by one clock read at each change. Of each of these stages the others
// count as starved (those before it) or blocked (those after it, and the wait for a place), so that a
// stage's three times always add up to the workers' time. Waiting for the end of the run is not counted.
#pragma once

#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <thread>
#include <vector>

#include "datagen/format/sample_opener.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/reading/sampler.hpp"
#include "io_backends/backend/backend.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/ticket_reader.hpp"
#include "miniapps/pipeline/transform.hpp"
#include "profiling/spans/span_log.hpp"

namespace penstock {

enum class BadSample : std::uint8_t {
  fail,  // the first one ends the run: next() returns its error
  skip,  // it is counted and named, and another one takes its slot
};

// Borrowed: all of it must outlive the loader.
struct LoaderInput {
  const Manifest* manifest = nullptr;
  Backend* backend = nullptr;
  const Transform* app_transform = nullptr;
  BatchPool* pool = nullptr;  // its shape is the batch, its size K + 1
};

struct LoaderSettings {
  Sampler sampler;
  PlanLimits limits;
  unsigned threads = 1;
  BadSample bad_sample = BadSample::fail;
  std::size_t depth = 1;                 // reads on their way, a thread
  std::chrono::nanoseconds patience{0};  // next() fails when no sample came for so long; 0: waits for ever
  SpanLog* spans = nullptr;  // where what the workers do is kept, span by span: a buffer each, and one behind
                             // them for the order of epochs; borrowed, as LoaderInput is
};

class BatchLoader final : public BatchSource {
 public:
  // Starts the workers. invalid_argument when the sampler's epoch is smaller than a batch.
  static Result<std::unique_ptr<BatchLoader>> make(const LoaderInput& input, const LoaderSettings& settings);
  // Waits for the workers however long they take: see close(). Batches have no bytes in place any more.
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
    std::vector<std::uint64_t> spent_ns;                         // of laps, and
    std::uint64_t waited_ns = 0;                                 // for a place
    std::optional<StageTimer::Clock::time_point> waiting_since;  // for one, now: all three under the mutex
  };

  BatchLoader(const LoaderInput& input, const LoaderSettings& settings);
  bool in_place() const { return input_.pool->shape().in_place; }
  void follow(Worker& worker);
  void work(const std::stop_token& stop, Worker& worker);
  void serve(const std::stop_token& stop, Worker& worker);
  void wait_for_room(std::unique_lock<std::mutex>& lock, const std::stop_token& stop, Worker& worker);
  bool take(Worker& worker);
  Result<void> fill(Worker& worker, TicketReader::Arrival& arrival);
  Result<void> transform(Worker& worker, const TicketReader::Arrival& arrival, Batch& batch);
  Result<const Batch*> pull(std::unique_lock<std::mutex>& lock);
  void check_progress(StageTimer::Clock::time_point waiting_since);
  std::vector<std::uint64_t> spent_ns() const;
  void account_wait(StageTimer::Clock::time_point since, const std::vector<std::uint64_t>& before,
                    const Batch* got);
  void settle(Worker& worker, const Ticket& ticket, Result<void> outcome);
  void name_skipped(std::uint64_t index, const Error& error);

  const LoaderInput input_;
  const LoaderSettings settings_;
  HeldObjects objects_;
  std::vector<Worker> workers_;

  mutable std::mutex mutex_;  // of all below
  std::condition_variable_any work_there_;
  std::condition_variable head_moved_;
  BatchPlan plan_;
  std::optional<Error> failure_;
  LoaderLosses named_;  // and not counted
  bool stalled_ = false;
  std::size_t working_ = 0;                    // workers that have not ended
  StageTimer::Clock::time_point last_sample_;  // when one was settled
  std::vector<std::uint64_t> worked_ns_;  // by stage, and by workers without work, while the consumer waited
  std::uint64_t consumer_waited_ns_ = 0;  // until batches were there, and
  std::uint64_t woke_late_ns_ = 0;        // from then on

  std::vector<std::jthread> threads_;  // last: joined before what they use dies
};

}  // namespace penstock
