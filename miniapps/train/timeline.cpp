#include "miniapps/train/timeline.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstring>
#include <span>
#include <utility>

#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/train_plan.hpp"
#include "profiling/session/intervals.hpp"
#include "results/record/record.hpp"

namespace penstock {
namespace {

constexpr size_t kPieceSpans = size_t{1} << 15;  // most spans that a rank sends in one message
// Each worker's buffer has space for this many spans in addition to those of the samples.
constexpr double kExtraSpans = 1024;
constexpr size_t kMostOrderSpans = 4096;  // at most this many epochs get a span for making their order

double seconds(int64_t nanoseconds) {
  return double(nanoseconds) * 1e-9;
}

int64_t wall_ns() {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(
             std::chrono::system_clock::now().time_since_epoch())
      .count();
}

std::string host_name() {
  utsname names{};
  return ::uname(&names) == 0 ? names.nodename : "";
}

// For how many spans the buffer of one worker has space. One worker may do all the work, so each buffer has
// space for the spans of all samples: read, load, each stage, and the wait before the sample. The memory
// limit may allow less.
size_t spans_per_worker(const TimelineRequest& request) {
  const double needed_spans = request.samples * double(3 + request.stages.size()) + kExtraSpans;
  const double most_spans = double(request.memory_bytes) / request.threads / sizeof(penstock_span);
  return size_t(std::min(needed_spans, most_spans));
}

Json packed(const TimelineRank& rank) {
  Json threads = Json::array();
  for (const auto& [thread, name] : rank.threads) threads.push_back(Json::array({thread, name}));
  return Json::array({rank.rank, rank.process_id, rank.host, std::move(threads)});
}

TimelineRank rank_from_json(const Json& json) {
  TimelineRank rank{json[0].get<int>(), json[1].get<int64_t>(), json[2].get<std::string>(), {}};
  for (const Json& thread : json[3])
    rank.threads.emplace_back(thread[0].get<uint32_t>(), thread[1].get<std::string>());
  return rank;
}

void keep_first_error(Result<void>& so_far, Result<void> next) {
  if (so_far.ok()) so_far = std::move(next);
}

std::string shuffle_action(const Shuffle& shuffle) {
  switch (shuffle.kind) {
    case Shuffle::Kind::global:
      return "Global Shuffle";
    case Shuffle::Kind::local:
      return "Local Shuffle";
    case Shuffle::Kind::buffer:
      return "Shuffle Buffer";
    case Shuffle::Kind::none:
      break;
  }
  return "Order";
}

}  // namespace

std::vector<penstock_span> step_spans(const TrainingRun& run, SteadyTime start, uint32_t thread,
                                      penstock_component before_step) {
  std::vector<penstock_span> spans;
  const auto add = [&](uint64_t number, int64_t begin, int64_t end, penstock_component what,
                       unsigned detail) {
    const StepTimes& step = run.steps[size_t(number)];
    spans.push_back({.begin_ns = span_ns(start) + begin,
                     .end_ns = span_ns(start) + end,
                     .number = number,
                     .bytes = what == PENSTOCK_ITERATION ? step.payload_bytes : 0,
                     .epoch = uint32_t(step.epoch),
                     .thread = thread,
                     .component = uint16_t(what),
                     .detail = uint16_t(detail),
                     .reserved = 0});
  };
  int64_t free_ns = 0;
  for (size_t i = 0; i < run.steps.size(); ++i) {
    const StepTimes& step = run.steps[i];
    // The span of the step ends at the deadline even if this machine woke up later: the accelerator computed
    // only until the deadline.
    const int64_t end_ns = std::min(step.deadline_ns, step.next_may_begin_ns);
    add(i, free_ns, step.next_may_begin_ns, PENSTOCK_ITERATION, 0);
    const int64_t collective_end_ns = free_ns + step.collective_ns;
    const int64_t batch_ready_ns = step.begin_ns - (step.observer_ns - step.collective_ns);
    if (collective_end_ns > free_ns) add(i, free_ns, collective_end_ns, before_step, 0);
    if (batch_ready_ns > collective_end_ns)
      add(i, collective_end_ns, batch_ready_ns, PENSTOCK_WAIT, PENSTOCK_WAIT_INPUT);
    if (step.begin_ns > batch_ready_ns) add(i, batch_ready_ns, step.begin_ns, before_step, 0);
    add(i, step.begin_ns, end_ns, PENSTOCK_TRAIN, 0);
    if (step.next_may_begin_ns > end_ns)
      add(i, end_ns, step.next_may_begin_ns, PENSTOCK_WAIT, PENSTOCK_WAIT_RANKS);
    free_ns = step.next_may_begin_ns;
  }
  if (run.observer_after_ns > 0 && !run.steps.empty())
    add(run.steps.size() - 1, free_ns, free_ns + run.observer_after_ns, before_step, 0);
  return spans;
}

void profile_steps(const TrainingRun& run, SteadyTime start, penstock_component before_step) {
  if (!spans_are_profiled()) return;
  for (const penstock_span& span : step_spans(run, start, span_thread(), before_step))
    penstock_profile_span(&span);
}

TimelineFigures timeline_figures(const SpanLog& workers, std::span<const penstock_span> steps,
                                 int64_t start_ns, int64_t wall_ns) {
  TimelineFigures figures;
  figures.spans = workers.recorded() + steps.size();
  figures.dropped = workers.dropped();
  std::vector<TimeInterval> reads;
  for (size_t i = 0; i < workers.buffers(); ++i) {
    for (const penstock_span& span : workers[i].spans()) {
      if (span.component != PENSTOCK_READ || span.end_ns > start_ns + wall_ns) continue;
      reads.push_back({span.begin_ns, span.end_ns});
      figures.read_bytes += span.bytes;
      figures.read_summed_s += seconds(span.end_ns - span.begin_ns);
    }
  }
  std::vector<TimeInterval> step_times;
  for (const penstock_span& span : steps)
    if (span.component == PENSTOCK_TRAIN) step_times.push_back({span.begin_ns, span.end_ns});
  reads = merged(std::move(reads));
  step_times = merged(std::move(step_times));
  figures.read_merged_s = seconds(length(reads));
  figures.train_merged_s = seconds(length(step_times));
  figures.read_train_overlap_s = seconds(common_length(reads, step_times));
  if (wall_ns > 0) figures.read_share = figures.read_merged_s / seconds(wall_ns);
  return figures;
}

Result<void> take_timeline(const Options& options, TrainRequest& request) {
  request.timeline = options.text("timeline");
  request.timeline_memory_bytes = options.size("timeline-memory");
  if (request.timeline.empty()) return success();
  PENSTOCK_TRY(timeline_format(request.timeline));
  if (request.searches_accelerators)
    return make_error(Errc::invalid_argument,
                      "--timeline shows one run, and --find-accelerators makes many: leave out one");
  return success();
}

void record_timeline(const TimelineFigures& figures, const TrainRequest& request, Trial& trial) {
  trial.sample(train_metrics::kSpans, double(figures.spans));
  trial.sample(train_metrics::kDroppedSpans, double(figures.dropped));
  if (figures.dropped > 0) {
    request.warn("the timeline lacks " + format_count(figures.dropped) + " of " +
                 format_count(figures.spans + figures.dropped) +
                 " spans that did not fit into --timeline-memory " +
                 format_size(request.timeline_memory_bytes) +
                 ": its merged times are unknown; raise --timeline-memory");
    return;
  }
  const auto bytes = double(figures.read_bytes);
  trial.sample(train_metrics::kReadSummed, figures.read_summed_s);
  trial.sample(train_metrics::kReadMerged, figures.read_merged_s);
  trial.sample(train_metrics::kTrainMerged, figures.train_merged_s);
  trial.sample(train_metrics::kReadShare, figures.read_share);
  trial.sample(train_metrics::kReadTrainOverlap, figures.read_train_overlap_s);
  if (figures.read_merged_s <= 0) return;
  trial.sample(train_metrics::kReadSummedRate, bytes / figures.read_summed_s);
  trial.sample(train_metrics::kReadMergedRate, bytes / figures.read_merged_s);
}

Timeline::Timeline(const TimelineRequest& request, Communicator& ranks, std::unique_ptr<SpanLog> log)
    : ranks_(ranks), request_(request), log_(std::move(log)) {}

Result<std::unique_ptr<Timeline>> Timeline::make(const TimelineRequest& request, Communicator& ranks) {
  std::vector<size_t> capacities(request.threads, spans_per_worker(request));
  capacities.push_back(size_t(std::min<uint64_t>(request.epochs, kMostOrderSpans)));
  Result<std::unique_ptr<SpanLog>> log = SpanLog::make(capacities);
  PENSTOCK_TRY(all_ok(ranks, log));
  std::unique_ptr<Timeline> timeline(new Timeline(request, ranks, *std::move(log)));
  PENSTOCK_ASSIGN(const TimelineFormat format, timeline_format(request.path));
  PENSTOCK_TRY(on_root(ranks, [&]() -> Result<void> {
    PENSTOCK_ASSIGN(TimelineFile file, TimelineFile::create(request.path, format));
    timeline->file_ = std::make_unique<TimelineFile>(std::move(file));
    return success();
  }));
  return timeline;
}

TimelineFigures Timeline::end(const TrainingRun& run, SteadyTime start, penstock_component before_step) {
  step_thread_ = span_thread();
  start_ns_ = span_ns(start);
  steps_ = step_spans(run, start, step_thread_, before_step);
  const int64_t run_ns =
      run.steps.empty() ? 0 : std::max(run.steps.back().end_ns, run.steps.back().next_may_begin_ns);
  return timeline_figures(*log_, steps_, start_ns_, run_ns);
}

std::vector<std::span<const penstock_span>> Timeline::pieces() const {
  std::vector<std::span<const penstock_span>> pieces;
  const auto split = [&](std::span<const penstock_span> all) {
    for (; !all.empty(); all = all.subspan(std::min(kPieceSpans, all.size())))
      pieces.push_back(all.first(std::min(kPieceSpans, all.size())));
  };
  split(steps_);
  for (size_t i = 0; i < log_->buffers(); ++i) split(std::as_const(*log_)[i].spans());
  return pieces;
}

// Gathers on rank 0 the names of all ranks, processes and threads. Collective.
Result<std::vector<TimelineRank>> Timeline::gather_names() const {
  TimelineRank mine{ranks_.rank(), ::getpid(), host_name(), {}};
  mine.threads.emplace_back(step_thread_, "accelerator");
  for (unsigned i = 0; i < request_.threads; ++i) {
    const auto spans = std::as_const(*log_)[i].spans();
    if (!spans.empty()) mine.threads.emplace_back(spans.front().thread, "worker " + std::to_string(i));
  }
  const std::vector<uint8_t> cbor = Json::to_cbor(packed(mine));
  PENSTOCK_ASSIGN(const auto gathered, ranks_.gather(std::as_bytes(std::span(cbor))));
  std::vector<TimelineRank> all;
  for (const std::vector<std::byte>& bytes : gathered) all.push_back(rank_from_json(Json::from_cbor(bytes)));
  return all;
}

Result<void> Timeline::begin_file() {
  const Manifest& manifest = *request_.manifest;
  TimelineNames names;
  names.stage_names = request_.stages;
  if (manifest.facts().format.find("hdf5") != std::string::npos) names.read_action = "HDF5 File Read";
  names.shuffle_action = shuffle_action(request_.shuffle);
  names.object = [&manifest](uint64_t sample, std::string& scratch) -> std::string_view {
    return manifest.object_name(manifest.sample(sample).object, scratch);
  };
  names.start_ns = start_ns_;
  names.wall_minus_span_ns = wall_ns() - span_ns(std::chrono::steady_clock::now());
  return file_->begin(std::move(names));
}

// Writes some spans of rank `sender` to the file, on rank 0. All ranks call it for each piece of spans; the
// ranks other than `sender` pass an empty piece.
Result<void> Timeline::add_piece(int sender, std::span<const penstock_span> piece) {
  std::vector<penstock_span> shifted;
  if (ranks_.rank() == sender) {
    shifted.assign(piece.begin(), piece.end());
    for (penstock_span& span : shifted) {
      span.begin_ns -= clock_offset_ns_;
      span.end_ns -= clock_offset_ns_;
    }
  }
  PENSTOCK_ASSIGN(const auto gathered, ranks_.gather(std::as_bytes(std::span(shifted))));
  if (!ranks_.root()) return success();
  const std::vector<std::byte>& bytes = gathered[size_t(sender)];
  shifted.resize(bytes.size() / sizeof(penstock_span));
  std::memcpy(shifted.data(), bytes.data(), bytes.size());
  return file_->add(shifted);
}

// Writes the file on rank 0. If rank 0 cannot write, it still makes all collective calls and returns the
// error at the end. Otherwise the other ranks would wait for rank 0 forever.
Result<void> Timeline::write() {
  PENSTOCK_ASSIGN(const Communicator::ClockOffset offset, ranks_.clock_offset());
  clock_offset_ns_ = offset.offset_ns;
  const std::vector<std::span<const penstock_span>> mine = pieces();
  std::vector<uint64_t> counts(size_t(ranks_.size()), 0);
  counts[size_t(ranks_.rank())] = mine.size();
  PENSTOCK_TRY(ranks_.all_reduce(std::span(counts), Reduction::sum));
  PENSTOCK_ASSIGN(std::vector<TimelineRank> names, gather_names());
  Result<void> result = ranks_.root() ? begin_file() : success();
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const auto index = size_t(rank);
    if (ranks_.root()) keep_first_error(result, file_->begin_rank(std::move(names[index])));
    for (uint64_t i = 0; i < counts[index]; ++i)
      keep_first_error(result, add_piece(rank, rank == ranks_.rank() ? mine[size_t(i)]
                                                                     : std::span<const penstock_span>()));
  }
  if (ranks_.root()) keep_first_error(result, file_->close());
  return on_root(ranks_, [&] { return result; });
}

}  // namespace penstock
