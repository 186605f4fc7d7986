// Threads: one thread of the command calls make(), run() and the destructor. run() starts a thread for each
// worker except the first, which works on the thread of run(). run() returns only after these threads have
// ended.
// Locks: FinishLatch::mutex_, ReadRun::mutex_ and those of SampleSource and Arrivals. None is held during a
// read.
// Ranks: spec.at_gate and spec.at_stonewall are collective calls. The thread of run() makes each of them
// once. It makes them also when the run fails, because the other ranks wait in the same call. With
// --collective, the reads are collective too (collective_reads.cpp).
// Memory: make() allocates buffers and queues. run() allocates little: before the clock starts, after it
// stops, and one number for each second of the run.
// Ctrl-C: workers check interrupted() before each sample. Reads in flight finish first. run() returns the
// results so far.
// Crash: nothing is written.
#include "benchmarks/read/read_engine.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <cassert>
#include <condition_variable>
#include <mutex>
#include <new>
#include <span>
#include <system_error>
#include <thread>
#include <type_traits>
#include <utility>

#include "benchmarks/read/read_team.hpp"
#include "benchmarks/read/read_worker.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kExtraRepeatTime{30};
constexpr int kRepeatTimeFactor = 10;

// Adds up what the workers have delivered so far. The thread of run() calls this while the other threads
// work. Each worker writes its own counts, and this function reads them with relaxed memory order. So the sum
// is exact only after the run.
RunTally progress_of(ReadWorkers workers, int64_t now_ns) {
  RunTally progress;
  progress.elapsed_s = double(now_ns) * 1e-9;
  for (const std::unique_ptr<ReadWorker>& worker : workers) {
    progress.samples += worker->delivered_samples();
    progress.bytes += worker->delivered_bytes();
  }
  return progress;
}

// The processor time that this process has used: of all its threads, in user and kernel mode.
double process_cpu_seconds() {
  struct rusage usage {};
  if (::getrusage(RUSAGE_SELF, &usage) != 0) return 0;
  const auto seconds = [](const struct timeval& time) {
    return double(time.tv_sec) + double(time.tv_usec) * 1e-6;
  };
  return seconds(usage.ru_utime) + seconds(usage.ru_stime);
}

// Lets run() wait until the threads that it started have ended. A wait also returns after the given time, so
// that run() can report the progress.
class FinishLatch {
 public:
  explicit FinishLatch(size_t expected) : running_threads_(expected) {}
  // Counts one thread as ended. Each thread calls it as its last step. It may notify without the lock: run()
  // destroys the latch only after it has joined the thread.
  void arrive() {
    {
      std::lock_guard lock(mutex_);
      --running_threads_;
    }
    all_finished_.notify_one();
  }
  bool wait_for(std::chrono::milliseconds time) {
    std::unique_lock lock(mutex_);
    return all_finished_.wait_for(lock, time, [&] { return running_threads_ == 0; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable all_finished_;
  size_t running_threads_;  // threads that have not called arrive()
};

// Adds up the results of all workers. It is called after their threads are joined, so it needs no lock.
RunTally gather(ReadRun& run) {
  RunTally total = std::move(run.run_figures);
  int64_t last_done_ns = 0;
  for (const std::unique_ptr<ReadWorker>& worker : run.workers) {
    total.join(worker->tally());
    last_done_ns = std::max(last_done_ns, worker->last_done_ns());
  }
  if (run.arrivals && run.deadline_ns != 0 && !run.stopped() && !interrupted()) {
    const int64_t ends_ns = run.deadline_ns;
    last_done_ns = std::max(last_done_ns, ends_ns);
    total.due_samples = run.arrivals->count_due(run.spec.ramp.count(), ends_ns);
    total.due_within_s = run.seconds_after_ramp(ends_ns);
  }
  total.passes = run.source.passes();
  total.wall_s = run.seconds_after_ramp(last_done_ns);
  total.elapsed_s = double(last_done_ns) * 1e-9;
  return total;
}

using BytesBySecond = std::vector<uint64_t>;

// The overloads of add() add one figure of a tally to the same figure of another tally. There is one overload
// for each type of figure.
void add(uint64_t& sum, uint64_t more) {
  sum += more;
}
void add(double& sum, double more) {
  sum += more;
}
void add(Histogram& all, const Histogram& more) {
  all.merge(more);
}
void add(TimesByCall& all, const TimesByCall& more) {
  merge(all, more);
}
void add(BytesBySecond& all, const BytesBySecond& more, size_t from = 0) {
  if (!more.empty()) all.resize(std::max(all.size(), from + more.size()));
  for (size_t i = 0; i < more.size(); ++i) all[from + i] += more[i];
}
void add(std::vector<std::string>& first, const std::vector<std::string>& more) {
  for (const std::string& one : more)
    if (first.size() < RunTally::kMostErrorsNamed) first.push_back(one);
}
void add(PictureWarningCounts& all, const PictureWarningCounts& more) {
  all.add(more);
}
void add(std::string& first, const std::string& other) {
  if (first.empty()) first = other;
}
void add(std::optional<Error>& first, const std::optional<Error>& other) {
  if (!first) first = other;
}
void add(std::vector<RankFigures>& all, const std::vector<RankFigures>& more) {
  all.resize(std::max(all.size(), more.size()));
  for (size_t i = 0; i < more.size(); ++i) {
    all[i].bytes += more[i].bytes;
    all[i].wall_s += more[i].wall_s;
  }
}

void record_figure(const RunTally& tally, double value, const RunFigure& figure, Trial& trial) {
  if (figure.omit_if_zero && value == 0) return;
  if (figure.value_metric != nullptr) trial.sample(*figure.value_metric, value);
  if (figure.rate_metric != nullptr)
    trial.sample(*figure.rate_metric, per_second(value, tally.*figure.seconds));
}
void record_figure(const RunTally& tally, const Histogram& times, const RunFigure& figure, Trial& trial) {
  if (tally.samples == 0 || times.count() == 0) return;
  for (const MetricInfo& metric : figure.percentiles) trial.sample(metric, times.percentile(metric.percent));
}
void record_figure(const RunTally&, const TimesByCall& calls, const RunFigure&, Trial& trial) {
  for (const auto& [call, times] : calls) {
    const std::string_view name = timed_call_name(call);
    trial.sample(read_metrics::kCalls, name, double(times.ns.count()));
    for (const MetricInfo& metric : read_metrics::kCallMetrics)
      trial.sample(metric, name, times.ns.percentile(metric.percent));
  }
}
void record_figure(const RunTally&, const PictureWarningCounts& warnings, const RunFigure&, Trial& trial) {
  for (size_t i = 0; i < kPictureWarnings; ++i)
    if (warnings.by_warning[i] > 0)
      trial.sample(read_metrics::kPictureWarnings, picture_warning_name(i), double(warnings.by_warning[i]));
}
void record_figure(const RunTally&, const std::vector<RankFigures>& ranks, const RunFigure&, Trial& trial) {
  record_ranks(ranks, kRankRatesOfRepeat, trial);
}

// The size of all members of RunTally that have a row in the table figures(). It must be the size of
// RunTally, because a member without a row would not be sent to other ranks.
constexpr size_t bytes_in_table() {
  size_t bytes = 0;
  RunTally::figures(
      [&](const char*, auto member, const RunFigure&) { bytes += sizeof(std::declval<RunTally>().*member); });
  return bytes;
}
static_assert(bytes_in_table() == sizeof(RunTally), "each member of RunTally has a row in its table");

}  // namespace

std::chrono::nanoseconds time_limit(const ReadEnd& end) {
  if (const auto* duration = std::get_if<Duration>(&end)) return duration->time;
  if (const auto* stonewall = std::get_if<Stonewall>(&end)) return stonewall->time;
  return {};
}

std::chrono::nanoseconds shortest_time(const ReadEnd& end) {
  const auto* passes = std::get_if<Passes>(&end);
  return passes != nullptr ? passes->shortest_time : std::chrono::nanoseconds(0);
}

ReadEnd with_time_limit(const ReadEnd& end, std::chrono::nanoseconds time) {
  if (std::holds_alternative<Stonewall>(end)) return Stonewall{time};
  return Duration{time};
}

unsigned ReadOptions::most_threads() const {
  return threads.empty() ? 0 : *std::max_element(threads.begin(), threads.end());
}

void RunTally::join(const RunTally& other) {
  figures([&](const char*, auto member, const RunFigure& figure) {
    using T = std::remove_reference_t<decltype(this->*member)>;
    if constexpr (std::is_arithmetic_v<T>) {
      if (figure.takes_max) {
        this->*member = std::max(this->*member, other.*member);
        return;
      }
    }
    add(this->*member, other.*member);
  });
}

void RunTally::append(const RunTally& later) {
  // A run rarely ends at a whole second. So the last entry of this run and the first entry of `later` belong
  // to the same second, and are added.
  const auto last_second = size_t(wall_s);
  figures([&](const char*, auto member, const RunFigure&) {
    using T = std::remove_reference_t<decltype(this->*member)>;
    if constexpr (std::is_same_v<T, BytesBySecond>)
      add(this->*member, later.*member, last_second);
    else
      add(this->*member, later.*member);
  });
}

void RunTally::record(Trial& trial) const {
  figures([&](const char*, auto member, const RunFigure& figure) {
    using T = std::remove_cvref_t<decltype(this->*member)>;
    if constexpr (std::is_arithmetic_v<T>)
      record_figure(*this, double(this->*member), figure, trial);
    else if constexpr (std::is_same_v<T, Histogram> || std::is_same_v<T, TimesByCall> ||
                       std::is_same_v<T, PictureWarningCounts> || std::is_same_v<T, std::vector<RankFigures>>)
      record_figure(*this, this->*member, figure, trial);
  });
}

double RunTally::payload_rate() const {
  return per_second(double(bytes), wall_s);
}

double RunTally::sample_rate() const {
  return per_second(double(samples), wall_s);
}

double per_second(double amount, double seconds) {
  return seconds > 0 ? amount / seconds : 0.0;
}

PassOrder ReadWork::order(const ReadOptions& options) const {
  return {options.order, samples->size(), options.seed,
          share,         offsets,         std::max<uint64_t>(options.sort_window, 1)};
}

ReadEngine::ReadEngine(const ReadWork& work, const ReadOptions& options)
    : work_(work),
      options_(options),
      objects_(*work.backend,
               work.manifest->one_object_per_sample() ? 0 : max_open_objects(work.manifest->objects())) {}

ReadEngine::~ReadEngine() = default;

Result<std::unique_ptr<ReadEngine>> ReadEngine::make(const ReadWork& work, const ReadOptions& options) {
  const unsigned threads = options.most_threads();
  if (threads == 0 || options.depth == 0)
    return make_error(Errc::invalid_argument, "reading needs at least one thread and depth 1");
  if (work.manifest->samples() == 0) return make_error(Errc::not_found, "the corpus has no samples to read");
  try {
    std::unique_ptr<ReadEngine> engine(new ReadEngine(work, options));
    PENSTOCK_TRY(engine->open_objects());
    for (unsigned i = 0; i < threads; ++i) {
      engine->workers_.push_back(
          options.collective ? collective_worker(engine->work_, options, engine->objects_)
                             : std::make_unique<ReadWorker>(engine->work_, options, engine->objects_));
      PENSTOCK_TRY(engine->workers_.back()->prepare());
    }
    return engine;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for " + std::to_string(threads) + " threads with " +
                                           std::to_string(options.depth) + " samples of up to " +
                                           std::to_string(work.samples->largest_bytes()) +
                                           " bytes each: choose fewer --threads or a smaller --depth");
  }
}

// Opens the objects that stay open for all runs, as many as the limit of descriptors allows. make() calls
// this before any worker exists, so workers find these open objects without a lock.
Result<void> ReadEngine::open_objects() {
  if (options_.collective) return open_for_collective_reads(work_, objects_);
  if (work_.manifest->one_object_per_sample()) return success();
  const uint64_t most_held = max_open_objects(work_.manifest->objects());
  for (uint64_t i = 0; i < most_held; ++i)
    static_cast<void>(objects_.open(i, work_.samples->name(uint32_t(i))));
  return success();
}

// The steps: start the threads, wait until all of them are ready, start the clock, read, wait for the other
// threads, join them, add up the results.
RunTally ReadEngine::run(const ReadSpec& spec, const ReadObserver& observer) {
  assert(spec.threads > 0 && spec.threads <= workers_.size());
  passes_run_ = spec.first_pass.value_or(passes_run_);
  const ReadWorkers workers = std::span(workers_).first(spec.threads);
  const ReadWorkers other_workers = workers.subspan(1);
  ReadRun run(workers_.front()->positions(), options_, work_.share, spec, passes_run_, workers);
  FinishLatch finish_latch(other_workers.size());
  std::vector<std::jthread> threads;
  try {
    for (const std::unique_ptr<ReadWorker>& worker : other_workers)
      threads.emplace_back([&run, &finish_latch, &worker] {
        worker->work(run);
        finish_latch.arrive();
      });
  } catch (const std::system_error& error) {
    // The threads that did start wait at the gate for the start of the clock. Without call_off() they would
    // wait for ever, and so would the join.
    run.call_off();
    threads.clear();
    if (spec.at_gate) spec.at_gate();  // the other ranks wait in this call
    if (spec.at_stonewall) static_cast<void>(spec.at_stonewall(0));
    RunTally not_started;
    not_started.failure = no_more_threads(error, spec.threads, "fewer --threads");
    return not_started;
  }
  const double cpu_s_before = process_cpu_seconds();
  run.open_gate();
  ReadWorker::Watch watch;
  if (observer) watch = [&](int64_t now_ns) { observer(progress_of(workers, now_ns)); };
  workers.front()->work(run, watch);
  while (!finish_latch.wait_for(std::chrono::milliseconds(100)))
    if (watch) watch(run.now_ns());
  // This joins the threads. Only then may gather() read their results, and only then may `run`, which they
  // use, be destroyed.
  threads.clear();
  passes_run_ += run.source.passes();
  RunTally total = gather(run);
  if (spec.ramp.count() == 0) total.cpu_s = process_cpu_seconds() - cpu_s_before;
  return total;
}

ReadSpec rest_of(const ReadSpec& spec, const RunTally& so_far) {
  const auto nanoseconds = [](double seconds) { return std::chrono::nanoseconds(int64_t(seconds * 1e9)); };
  ReadSpec rest = spec;
  if (spec.first_pass) rest.first_pass = *spec.first_pass + so_far.passes;
  rest.time_measured_before = spec.time_measured_before + nanoseconds(so_far.wall_s);
  const std::chrono::nanoseconds elapsed = nanoseconds(so_far.elapsed_s);
  rest.ramp = std::max(spec.ramp - elapsed, std::chrono::nanoseconds(0));
  if (const std::chrono::nanoseconds limit = time_limit(spec.end); limit.count() != 0)
    rest.end = with_time_limit(spec.end, std::max(limit + spec.ramp - elapsed, std::chrono::nanoseconds(1)));
  return rest;
}

std::optional<RepeatFigures> run_repeat(ReadTeam& team, Tier& tier, CacheControl& cache,
                                        const RepeatPlan& plan) {
  RepeatFigures figures;
  figures.device_bytes = 0;
  const std::chrono::nanoseconds wanted_time =
      std::max(time_limit(plan.spec.end), shortest_time(plan.spec.end));
  const Clock::time_point deadline = Clock::now() + kExtraRepeatTime + kRepeatTimeFactor * wanted_time;
  for (bool is_first_pass = true;; is_first_pass = false) {
    if (plan.note) plan.note("preparing the cache");
    const auto prepared = team.prepare(cache);
    if (!prepared.ok()) {
      if (is_first_pass) return std::nullopt;
      break;
    }
    if (is_first_pass) figures.cache = prepared->state;
    add_verdict(figures.verdict, figures.reason, prepared->verdict, prepared->reason);
    const bool cache_emptied = prepared->state.method == "evict" || prepared->state.method == "drop";
    if (plan.note) plan.note(plan.progress_text);
    ReadObserver observer;
    if (plan.observer)
      observer = [&](RunTally so_far) {
        so_far.elapsed_s += figures.tally.elapsed_s;
        so_far.samples += figures.tally.samples;
        so_far.bytes += figures.tally.bytes;
        plan.observer(so_far);
      };
    const uint64_t bytes_before = tier.backend->moved_bytes().read;
    const std::optional<uint64_t> device_bytes_before = device_bytes_read();
    ReadSpec pass = rest_of(plan.spec, figures.tally);
    if (cache_emptied) pass.max_passes = 1;
    const auto run_pass = [&](const ReadSpec& spec) { return plan.run(spec, observer); };
    const RunTally tally = team.is_single_rank() ? run_pass(pass) : team.run(pass, run_pass);
    std::optional<uint64_t> device_bytes;
    if (const auto device_after = device_bytes_read(); device_bytes_before && device_after)
      device_bytes = *device_after - *device_bytes_before;
    device_bytes = team.sum(device_bytes);
    figures.read_call_bytes += team.sum(tier.backend->moved_bytes().read - bytes_before);
    if (!device_bytes) figures.device_bytes.reset();
    if (figures.device_bytes) *figures.device_bytes += *device_bytes;
    figures.tally.append(tally);
    if (tally.failure || team.stopped() || !cache_emptied) break;
    if (figures.tally.wall_s >= std::chrono::duration<double>(wanted_time).count()) break;
    if (team.any_rank(Clock::now() >= deadline)) break;
  }
  return figures;
}

}  // namespace penstock
