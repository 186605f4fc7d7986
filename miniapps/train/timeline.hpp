// --timeline: who was at what when, in a file, and what follows from it for reading under steps.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "datagen/manifest/manifest.hpp"
#include "datagen/reading/sampler.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/training.hpp"
#include "profiling/spans/span_log.hpp"
#include "profiling/spans/timeline_file.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Of one rank, or joined over several. Times are of the reads and steps that ended within
// the run's wall; merged: of the union, so that what several workers do at a time counts once.
struct TimelineFigures {
  std::uint64_t spans = 0;    // kept
  std::uint64_t dropped = 0;  // for lack of memory: then none of what follows means anything
  std::uint64_t read_bytes = 0;
  double read_summed_s = 0;
  double read_merged_s = 0;
  double train_merged_s = 0;
  double read_train_overlap_s = 0;  // both at once
  double read_share = 0;            // read_merged_s over the wall
};

// How much a run may keep, where it goes, what its spans mean, and whose they are.
struct TimelineRequest {
  std::string path;                   // ends in .csv or .json
  std::uint64_t memory = 0;           // bytes, of each rank, for what its workers do
  unsigned threads = 0;               // workers
  std::vector<std::string> stages{};  // of the transform
  double samples = 0;                 // that are tried at most, by all workers together
  std::uint64_t epochs = 0;           // likewise
  const Manifest* manifest = nullptr;
  Shuffle shuffle = Shuffle::global;
};

struct TrainRequest;

// Takes --timeline and --timeline-memory into the request.
Result<void> take_timeline(const Options& options, TrainRequest& request);

// One file of all ranks of a job, which rank 0 writes: their times are moved to its clock
// (Communicator::clock_offset()). Collective; one thread.
class Timeline {
 public:
  // Makes the file, and the buffers: as large as the run needs, or as the memory allows. Borrows the
  // manifest.
  static Result<std::unique_ptr<Timeline>> make(const TimelineRequest& request, Communicator& ranks);

  SpanLog& log() { return *log_; }  // LoaderSettings::spans

  // Called by the thread that made the steps, when they are over: records their spans and sums up all spans.
  // `before_step` is the component of what ran between them.
  TimelineFigures end(const TrainingRun& run, SteadyTime start,
                      penstock_component before_step = PENSTOCK_VALIDATION);
  // After end(), or without: a table of what there is.
  Result<void> write();

 private:
  Timeline(const TimelineRequest& request, Communicator& ranks, std::unique_ptr<SpanLog> log);
  std::vector<std::span<const penstock_span>> pieces() const;
  Result<void> begin_file();
  Result<std::vector<TimelineRank>> introduce() const;
  Result<void> add_piece(int of, std::span<const penstock_span> piece);

  Communicator& ranks_;
  const TimelineRequest request_;
  std::unique_ptr<SpanLog> log_;
  std::unique_ptr<TimelineFile> file_;  // on rank 0
  std::vector<penstock_span> steps_;
  std::uint32_t step_thread_ = 0;
  std::int64_t start_ns_ = 0;
  std::int64_t offset_ns_ = 0;  // of this rank's clock from rank 0's
};

// The spans of the steps, from times that the training took anyway: of each step an iteration, the wait for
// its batch, `before_step`, the step itself, and the wait for other ranks. `start` as for run_training().
std::vector<penstock_span> step_spans(const TrainingRun& run, SteadyTime start, std::uint32_t thread,
                                      penstock_component before_step = PENSTOCK_VALIDATION);

// The same, given to the profiler where this process runs under it. Of the thread that made the steps.
void profile_steps(const TrainingRun& run, SteadyTime start, penstock_component before_step);

// Spans and bytes summed over all ranks, times and shares the mean. Collective.
Result<TimelineFigures> joined(Communicator& ranks, const TimelineFigures& mine);

// Adds them to the trial, of a run that was given so much memory for its spans. Part of the spans says
// nothing about all of the run: then only the counts.
void record_timeline(const TimelineFigures& figures, std::uint64_t memory, Trial& trial);

// Of one rank: `wall_ns` from `start_ns` on is what counts.
TimelineFigures timeline_figures(const SpanLog& workers, std::span<const penstock_span> steps,
                                 std::int64_t start_ns, std::int64_t wall_ns);

}  // namespace penstock
