// The read engine: threads that read samples of a corpus as fast as the tier delivers them. ReadOptions says
// what to read, ReadSpec when one run ends, and RunTally what the run did.
//
// The work for one sample is kept short, without allocation, lock or string:
// 1. Take the next position in the order of the pass. Every few samples this needs a relaxed atomic add.
// 2. Find the object's name, by two loads.
// 3. Read into a reused buffer, by the back end.
// 4. Read the clock once, which ends this sample and starts the next.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "benchmarks/read/read_metrics.hpp"
#include "datagen/cache/cache_control.hpp"
#include "datagen/codec/picture_warnings.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/reading/sample_order.hpp"
#include "datagen/reading/sample_reader.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/histogram.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/decorators/traced.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/record.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// What ends a repeat, or one of the runs of a repeat: Passes, Duration or Stonewall. A time of 0 is no limit.
struct Passes {
  // Passes are read completely. While all of them together have lasted less than this (without the ramp),
  // another pass is read.
  std::chrono::nanoseconds shortest_time{0};
};
struct Duration {
  // Reading ends at this time, also within a pass; reads in flight are finished.
  std::chrono::nanoseconds time{0};
};
struct Stonewall {
  // At this time (the stonewall) all ranks count what they have read. Then each rank reads on until it has
  // read as many samples as the fastest rank had read by then.
  std::chrono::nanoseconds time{0};
};
using ReadEnd = std::variant<Passes, Duration, Stonewall>;

std::chrono::nanoseconds time_limit(const ReadEnd& end);  // the limit of Duration or Stonewall; 0 for Passes
// Passes::shortest_time; 0 for Duration and Stonewall.
std::chrono::nanoseconds shortest_time(const ReadEnd& end);
// Returns `end` with `time` as its limit. Passes have no limit, so they become a Duration.
ReadEnd with_time_limit(const ReadEnd& end, std::chrono::nanoseconds time);

// The most reads in flight that commands allow for one process, over all its threads.
inline constexpr uint64_t kMostInFlight = 16384;

// The options of `penstock read` (read_command.cpp). Other objects keep references to it, so it must outlive
// them.
struct ReadOptions {
  std::vector<unsigned> threads{1};  // the numbers of threads to measure, each at least 1
  // How many reads each thread keeps in flight. If above 1, reads go through deep_queue().
  unsigned depth = 1;
  SampleOrder order = SampleOrder::sequential;
  uint64_t sort_window = 1;  // for SampleOrder::physical: how many samples are sorted together
  CacheRequest cache = CacheRequest::asis;
  ColdMethod cold_method = ColdMethod::evict;
  bool decode = false;  // the thread that read a sample also decodes it, from JPEG or PNG to RGB
  // Whether measured repeats verify checksums too. The warm-up pass always verifies them if the manifest has
  // any.
  bool verify = false;
  // Whether the run goes on after a sample that cannot be read, verified or decoded. The sample is counted.
  bool skip_errors = false;
  std::chrono::nanoseconds min_time{0};  // a shorter repeat gets the verdict `short`
  ReadEnd end = Passes{};
  // When samples are due. Absent: a closed loop, in which a thread reads the next sample as soon as it has
  // finished its last one. Baseline and ceiling are not measured for an open loop.
  std::optional<OpenLoop> open_loop{};
  std::chrono::nanoseconds ramp{0};
  size_t repeats = 1;
  bool measure_baseline = true;
  bool measure_ceiling = true;
  uint64_t seed = 0;
  // Collective reads: all ranks read each object together (needs Caps::collective_reads). This needs one
  // thread, depth 1, repeats of whole passes, and objects that hold several samples.
  bool collective = false;
  // By how many parts a rank moves on from each pass to the next. The corpus has one part for each rank
  // (RankShare::shift). With 0 a rank always reads the same part. With any other value, baseline and ceiling
  // are not measured, because their loops always read the same part.
  uint64_t rank_shift = 0;

  unsigned most_threads() const;
};

struct RunTally;

// How one figure of RunTally is joined with the same figure of another tally, and how it is recorded. join()
// adds numbers, or keeps the larger one with `takes_max`. Other types are merged by add() in read_engine.cpp.
struct RunFigure {
  bool takes_max = false;  // join() keeps the larger number
  const MetricInfo* value_metric = nullptr;
  // Metric of the rate, which is this figure divided by the figure that `seconds` points to.
  const MetricInfo* rate_metric = nullptr;
  double RunTally::*seconds = nullptr;
  // If the figure is 0, `value_metric` and `rate_metric` are not recorded.
  bool omit_if_zero = false;
  // For a distribution: one metric for each percentile that is recorded (MetricInfo::percent). Nothing is
  // recorded if the distribution has no values.
  std::span<const MetricInfo> percentiles = {};
};

// What a run of reads or of a probe did, without the ramp. run() also returns it after a failure, with what
// was measured until then. The table figures() defines how each figure is joined with other tallies, sent
// between ranks and recorded. So a new figure needs a member and a row of that table.
struct RunTally {
  // Samples that were completely read, and decoded or verified if requested.
  uint64_t samples = 0;
  uint64_t bytes = 0;   // payload of these samples
  uint64_t errors = 0;  // samples that failed: those that were skipped, or the one that ended the run
  // Samples whose checksum differs from the manifest's. `errors` includes them.
  uint64_t wrong_samples = 0;
  uint64_t passes = 0;  // whole passes that were given to threads; not all their reads need to have finished
  PictureWarningCounts picture_warnings;  // of decoded samples; `samples` includes them
  // Seconds from the start (or the end of the ramp) to the last completion.
  double wall_s = 0;
  double elapsed_s = 0;  // the same time as wall_s, plus the ramp
  double cpu_s = 0;  // processor time of this process during the run; 0 with a ramp, which it would include
  double first_done_s = 0;        // the part of wall_s until the first thread had nothing left to read
  uint64_t first_done_bytes = 0;  // bytes that all threads together had delivered by first_done_s
  double stonewall_s = 0;         // the part of wall_s until the last completion before the stonewall
  uint64_t stonewall_bytes = 0;   // bytes that all threads together had delivered by stonewall_s
  // The time that each sample took. It begins before the open (in an open loop: when the sample was due) and
  // ends after the close. It includes decoding and verification.
  Histogram latency_ns;
  // Open loop: how late each sample was started: from when it was due until before its open.
  Histogram late_ns;
  // How many samples of an open loop were due in due_within_s. 0 if the loop ended before its time limit.
  uint64_t due_samples = 0;
  double due_within_s = 0;  // length of the time in which due_samples were due; wall_s is at least as long
  // The bytes of each second of wall_s. The last second may be shorter.
  std::vector<uint64_t> bytes_by_second;
  std::vector<std::string> first_errors;  // texts of the first errors, at most kMostErrorsNamed
  std::string first_wrong_text;           // text of the first checksum error
  std::optional<Error> failure;           // the error that ended the run, or that prevented its start
  // Times of the back end's calls, also those during the ramp; only if the back end is traced.
  TimesByCall calls;
  std::vector<RankFigures> ranks;  // one entry for each rank, if several ran together (read_team.hpp)

  // The table of all figures. Calls `visit` for each figure, with its name, its member and its RunFigure.
  template <class Visit>
  static constexpr void figures(Visit&& visit) {
    using T = RunTally;
    using namespace read_metrics;
    visit("samples", &T::samples, {.rate_metric = &kSampleRate, .seconds = &T::wall_s});
    visit("bytes", &T::bytes,
          {.value_metric = &kPayloadBytes, .rate_metric = &kPayloadRate, .seconds = &T::wall_s});
    visit("errors", &T::errors, {});
    visit("wrong", &T::wrong_samples, {});
    visit("picture_warnings", &T::picture_warnings, {});
    visit("passes", &T::passes, {.takes_max = true});
    visit("wall_s", &T::wall_s, {.takes_max = true, .value_metric = &kWall});
    visit("elapsed_s", &T::elapsed_s, {.takes_max = true});
    visit("cpu_s", &T::cpu_s, {.value_metric = &kCpuTime, .omit_if_zero = true});
    visit("first_done_s", &T::first_done_s, {.takes_max = true});
    visit("first_done_bytes", &T::first_done_bytes,
          {.rate_metric = &kFirstDoneRate, .seconds = &T::first_done_s});
    visit("stonewall_s", &T::stonewall_s, {.takes_max = true});
    visit("stonewall_bytes", &T::stonewall_bytes,
          {.rate_metric = &kStonewallRate, .seconds = &T::stonewall_s, .omit_if_zero = true});
    visit("latency_ns", &T::latency_ns, {.percentiles = kLatencyMetrics});
    visit("late_ns", &T::late_ns, {.percentiles = kLatenessMetrics});
    visit("due", &T::due_samples,
          {.rate_metric = &kOfferedRate, .seconds = &T::due_within_s, .omit_if_zero = true});
    visit("due_within_s", &T::due_within_s, {.takes_max = true});
    visit("bytes_by_second", &T::bytes_by_second, {});
    visit("first_errors", &T::first_errors, {});
    visit("first_wrong", &T::first_wrong_text, {});
    visit("failure", &T::failure, {});
    visit("calls", &T::calls, {});
    visit("ranks", &T::ranks, {});
  }

  static constexpr size_t kMostErrorsNamed = 5;

  // Adds the tally of another thread or rank that read at the same time.
  void join(const RunTally& other);
  // Adds a later run of the same repeat. Times are added, and bytes_by_second continues.
  void append(const RunTally& later);

  // Adds to the trial one value of each metric in the table.
  void record(Trial& trial) const;

  double payload_rate() const;  // bytes per second of wall_s; 0 if wall_s is 0
  double sample_rate() const;
};

double per_second(double amount, double seconds);  // 0 if `seconds` is 0

class ReadTeam;
class ReadWorker;

// The corpus and the tier that an engine reads. Everything is borrowed and must outlive the engine.
struct ReadWork {
  const Manifest* manifest = nullptr;
  const SampleList* samples = nullptr;  // the samples of the manifest, from corpus_samples()
  Backend* backend = nullptr;
  // For SampleOrder::physical: the offset of each sample on the device.
  const std::vector<uint64_t>* offsets = nullptr;
  RankShare share{};  // the part of every pass that this rank reads

  PassOrder order(const ReadOptions& options) const;
};

// What one run does: how many threads read, and when it ends.
struct ReadSpec {
  unsigned threads = 1;     // at most ReadOptions::most_threads()
  uint64_t max_passes = 0;  // passes after which the run ends; 0: no limit
  // What ends the run besides max_passes. A time limit counts from the start of the ramp.
  // With a Stonewall, all threads stop at its time, or earlier if all passes are read. Then the function
  // at_stonewall returns how many samples the fastest rank has read, and this rank reads on until it has as
  // many.
  ReadEnd end = Passes{};
  std::chrono::nanoseconds ramp{0};  // completions before this time are not counted
  // How long the earlier runs of this repeat lasted together. The seconds of RunTally::bytes_by_second are
  // counted from the start of the first of these runs.
  std::chrono::nanoseconds time_measured_before{0};
  bool verify = false;  // compare each sample's CRC32C with the manifest, which must have checksums
  // The number of the first pass, on which the shuffled order depends. Absent: the number after the last pass
  // of the previous run.
  std::optional<uint64_t> first_pass{};
  std::function<void()> at_gate{};  // called when all threads are ready to read, just before the clock starts
  // The number of the repeat if the run is measured. Absent for other runs, such as the warm-up.
  // Under the profiler, each thread of a measured run records one span (PENSTOCK_READ) with what it delivered
  // after the ramp. The span's epoch is the number of the repeat.
  // ReadOptions::open_loop applies only to measured runs. In an open loop the first free thread starts a
  // sample when the sample is due, and the sample's latency counts from that time.
  std::optional<uint32_t> measured_repeat{};
  // Called once, when all threads of this rank have stopped at the stonewall, on the thread of run(). It gets
  // the number of samples that this rank has taken, and returns the largest such number of any rank. Absent:
  // there are no other ranks.
  std::function<uint64_t(uint64_t taken)> at_stonewall{};
};

// Receives the progress of a run: only samples, bytes and elapsed_s are set. The thread of run() calls it
// about ten times a second. That thread also reads samples, and calls it between two of them.
using ReadObserver = std::function<void(const RunTally& so_far)>;

// Reads a corpus with several threads. Buffers, decoders, queues and open readers are kept between runs, and
// threads exist only during a run. Only one run() at a time. Borrows the options.
class ReadEngine {
 public:
  // Makes an engine: allocates most_threads() * depth buffers, each for the largest sample, and opens
  // objects.
  // It opens the objects that hold several samples, as many as the limit of descriptors allows. All other
  // objects are opened anew for each read. An object that cannot be opened is no error here: the reads of its
  // samples fail later.
  // For collective reads all objects must be open, so make() fails if one cannot be opened. The error is
  // `exhausted` if the limit of descriptors is too low.
  static Result<std::unique_ptr<ReadEngine>> make(const ReadWork& work, const ReadOptions& options);
  ~ReadEngine();

  // Does one run: reads samples until `spec` ends it, or until Ctrl-C, which is noticed between samples.
  // Without ReadSpec::first_pass, a run continues the numbers of the passes after the previous run. So no two
  // shuffled passes of an engine have the same order.
  RunTally run(const ReadSpec& spec, const ReadObserver& observer = {});

 private:
  ReadEngine(const ReadWork& work, const ReadOptions& options);
  Result<void> open_objects();

  const ReadWork work_;
  const ReadOptions& options_;
  HeldObjects objects_;
  std::vector<std::unique_ptr<ReadWorker>> workers_;
  uint64_t passes_run_ = 0;
};

// Returns the spec for the next run of a repeat. `spec` is for the whole repeat, and its time limit must not
// include the ramp. `so_far` is what the earlier runs of the repeat did. In the returned spec, the time limit
// is the time that remains, including what remains of the ramp.
ReadSpec rest_of(const ReadSpec& spec, const RunTally& so_far);

// How to do a repeat. A repeat reads passes, each in the requested cache state, until they have lasted long
// enough.
struct RepeatPlan {
  std::string progress_text{};  // text of the progress line: "reading"
  ReadSpec spec{};              // for the whole repeat; its time limit does not include the ramp
  std::function<RunTally(const ReadSpec& pass, const ReadObserver& observer)> run{};
  // Gets the progress of the repeat; may be empty. The times that it gets count from the start of the repeat,
  // also in later passes.
  ReadObserver observer{};
  std::function<void(std::string_view what)> note{};  // shows a progress text; may be empty
};

struct RepeatFigures {
  RunTally tally;
  CacheState cache;  // the proven cache state before the first pass of the repeat
  // The verdict is not_cold or not_warm if a pass did not start in the requested cache state.
  Verdict verdict = Verdict::ok;
  std::string reason;
  uint64_t read_call_bytes = 0;          // bytes that the back end's read calls returned
  std::optional<uint64_t> device_bytes;  // bytes that came from the device or server, for all ranks
};

// Does a repeat: prepares the cache, and reads passes until these have lasted the wanted time (the limit or
// the shortest time of plan.spec). Collective: all ranks must call it.
// If preparing empties the cache, it is prepared before each pass, else only once. The repeat ends early when
// reading and preparing have taken more than 30 s plus ten times the wanted time. Returns nothing if
// interrupted before anything was measured.
std::optional<RepeatFigures> run_repeat(ReadTeam& team, Tier& tier, CacheControl& cache,
                                        const RepeatPlan& plan);

}  // namespace penstock
