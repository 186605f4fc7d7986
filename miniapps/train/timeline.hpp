// Implements --timeline: writes the spans of all threads to a file, and calculates how much reading overlaps
// with steps.
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

// Figures of one rank, or of several ranks together. They cover the reads and steps that ended within the
// run's wall time. A figure with "merged" in its name is the length of the union of intervals: time in which
// several workers read at once counts once.
struct TimelineFigures {
  uint64_t spans = 0;  // spans that were recorded
  // Spans that were lost because the memory was full; if not 0, the figures below are invalid.
  uint64_t dropped = 0;
  uint64_t read_bytes = 0;
  double read_summed_s = 0;
  double read_merged_s = 0;
  double train_merged_s = 0;
  double read_train_overlap_s = 0;  // time in which a read and a step were both running
  double read_share = 0;            // share of the wall time: read_merged_s / wall time
};

// What a timeline needs: its memory and file, and the names and numbers of its spans.
struct TimelineRequest {
  std::string path;                   // ends in .csv or .json
  uint64_t memory_bytes = 0;          // memory of each rank for the spans of its workers, in bytes
  unsigned threads = 0;               // number of workers
  std::vector<std::string> stages{};  // names of the transform's stages
  double samples = 0;                 // the most samples that all workers together may try to load
  uint64_t epochs = 0;                // number of epochs whose order is made, at most
  const Manifest* manifest = nullptr;
  Shuffle shuffle = Shuffle::global;
};

struct TrainRequest;

// Parses --timeline and --timeline-memory into the request.
Result<void> take_timeline(const Options& options, TrainRequest& request);

// Writes one timeline file for all ranks of a job. Rank 0 writes it; all times in it are times of rank 0's
// clock (Communicator::clock_offset()). Every function that returns a Result is collective. Only one thread
// at a time may use it.
class Timeline {
 public:
  // Creates the file and the buffers for spans. The buffers are as large as the run needs, or as the memory
  // limit allows. Borrows the manifest of the request.
  static Result<std::unique_ptr<Timeline>> make(const TimelineRequest& request, Communicator& ranks);

  SpanLog& log() { return *log_; }  // LoaderSettings::spans

  // Records the spans of the steps and returns the figures of all spans. Called when all steps are made, by
  // the thread that made them. `before_step` is the component for the work of observers between steps.
  // `start` is time 0 of the run.
  TimelineFigures end(const TrainingRun& run, SteadyTime start,
                      penstock_component before_step = PENSTOCK_VALIDATION);
  // Writes the file. It has the spans that the workers recorded and, if end() was called, those of the steps.
  Result<void> write();

 private:
  Timeline(const TimelineRequest& request, Communicator& ranks, std::unique_ptr<SpanLog> log);
  std::vector<std::span<const penstock_span>> pieces() const;
  Result<void> begin_file();
  Result<std::vector<TimelineRank>> gather_names() const;
  Result<void> add_piece(int sender, std::span<const penstock_span> piece);

  Communicator& ranks_;
  const TimelineRequest request_;
  std::unique_ptr<SpanLog> log_;
  std::unique_ptr<TimelineFile> file_;  // null except on rank 0
  std::vector<penstock_span> steps_;
  uint32_t step_thread_ = 0;
  int64_t start_ns_ = 0;
  int64_t clock_offset_ns_ = 0;  // this rank's clock minus rank 0's clock
};

// Makes the spans of the steps from the times in `run`. Each step has these spans, without those of length 0:
// the whole iteration, the wait for its batch, the work of observers before the step (with the component
// `before_step`), the step itself, and the wait for other ranks. `start` is time 0 of the run.
std::vector<penstock_span> step_spans(const TrainingRun& run, SteadyTime start, uint32_t thread,
                                      penstock_component before_step = PENSTOCK_VALIDATION);

// Gives the spans of step_spans() to Penstock's profiler, if this process runs under it. Called by the thread
// that made the steps.
void profile_steps(const TrainingRun& run, SteadyTime start, penstock_component before_step);

// Adds the figures to the trial. If spans were lost, it warns and adds only how many spans were recorded and
// lost: figures of incomplete spans would be wrong.
void record_timeline(const TimelineFigures& figures, const TrainRequest& request, Trial& trial);

// Calculates the figures of one rank for the time from `start_ns` to `start_ns` + `wall_ns`.
TimelineFigures timeline_figures(const SpanLog& workers, std::span<const penstock_span> steps,
                                 int64_t start_ns, int64_t wall_ns);

}  // namespace penstock
