#include "miniapps/train_cell.hpp"

#include <sys/resource.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagen/cache_control.hpp"
#include "datagen/corpus_samples.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/progress.hpp"
#include "io_backends/base/units.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/training.hpp"
#include "miniapps/sample_log.hpp"
#include "results/table.hpp"

namespace penstock {
namespace {

constexpr double kOvershootTolerance = 0.01;
constexpr std::chrono::seconds kAloneLongest{20};  // of input without an accelerator, once it made
constexpr std::uint64_t kAloneBatches = 8;         // at least these batches
constexpr std::size_t kDepthOfQueues = 16;
constexpr std::size_t kStepsKept = 100'000;  // raw step times in a record

// What one run through the pipeline left behind.
struct Passage {
  TrainingRun run;
  std::vector<StageTally> stages;
  LoaderLosses losses;
  std::vector<LostTime> lost;
};

double peak_memory_bytes() {
  rusage usage{};
  ::getrusage(RUSAGE_SELF, &usage);
  return static_cast<double>(usage.ru_maxrss) * 1024.0;
}

class Cell {
 public:
  Cell(const TrainSetup& setup, const Corpus& corpus, const SampleList& samples, const Tier& tier,
       BatchPool& pool, Trial& trial)
      : setup_(setup),
        corpus_(corpus),
        tier_(tier),
        pool_(pool),
        trial_(trial),
        cache_(tier, corpus.manifest, samples, setup.cache, ColdMethod::evict, setup.threads) {}

  Result<void> measure();

 private:
  void describe(std::chrono::nanoseconds step);
  Result<Passage> pass(Accelerator& accelerator, const PlanLimits& limits, const StepWatcher& watcher);
  Result<Passage> train(Accelerator& accelerator, std::optional<SampleLog> log);
  std::size_t depth() const;
  std::uint64_t steps_an_epoch() const;
  std::uint64_t planned_steps() const;
  bool alone_on_both_sides(const CacheState& state) const;
  Result<TrainingRun> input_alone(std::uint64_t steps, unsigned parts);
  void report(const Passage& passage, const TrainingFigures& figures);
  void report_steps(const TrainingRun& run);
  void report_stages(const Passage& passage, const TrainingFigures& figures);
  void report_lost(const Passage& passage, const TrainingFigures& figures);
  void judge(const Passage& passage, const TrainingFigures& figures);
  void report_input_alone(const std::vector<TrainingRun>& parts, std::uint64_t steps, double input_wait_s);
  std::string log_path() const;

  const TrainSetup& setup_;
  const Corpus& corpus_;
  const Tier& tier_;
  BatchPool& pool_;
  Trial& trial_;
  CacheControl cache_;
};

void Cell::describe(std::chrono::nanoseconds step) {
  trial_.corpus(corpus_facts(corpus_));
  trial_.parameter("app", setup_.app->name);
  trial_.parameter("tier", tier_.name);
  trial_.parameter("accelerator", setup_.accelerator);
  trial_.parameter("step_s", std::chrono::duration<double>(step).count());
  trial_.parameter("batch", setup_.batch);
  trial_.parameter("prefetch", setup_.prefetch);
  trial_.parameter("threads", setup_.threads);
  trial_.parameter("depth", depth());
  trial_.parameter("shuffle", setup_.shuffle == Shuffle::none    ? "none"
                              : setup_.shuffle == Shuffle::local ? "local"
                                                                 : "global");
  trial_.parameter("layout", setup_.treatment->layout());
  trial_.parameter("labels", corpus_.manifest.facts().label_names.size());
}

Result<Passage> Cell::pass(Accelerator& accelerator, const PlanLimits& limits, const StepWatcher& watcher) {
  PENSTOCK_ASSIGN(const Sampler sampler, make_sampler(setup_, corpus_));
  const SteadyTime start = std::chrono::steady_clock::now();
  PENSTOCK_ASSIGN(const std::unique_ptr<BatchLoader> loader,
                  BatchLoader::make({&corpus_.manifest, tier_.backend.get(), setup_.treatment.get(), &pool_},
                                    {sampler, limits, setup_.threads, setup_.bad_sample, depth()}));
  Passage passage;
  passage.run = run_training(*loader, accelerator, start, watcher);
  passage.stages = loader->times();
  passage.losses = loader->losses();
  passage.lost = loader->lost();
  return passage;
}

std::string Cell::log_path() const {
  return &tier_ == &corpus_.tier ? setup_.sample_log : setup_.sample_log + "." + tier_.name;
}

Result<Passage> Cell::train(Accelerator& accelerator, std::optional<SampleLog> log) {
  Progress progress(setup_.progress, std::string(setup_.app->name) + " on " + tier_.name, planned_steps(),
                    "steps");
  std::optional<Error> log_failure;
  PENSTOCK_ASSIGN(Passage passage, pass(accelerator, setup_.limits,
                                        [&](std::uint64_t step, const Batch& batch) -> Result<bool> {
                                          progress.advance(1);
                                          if (!log) return true;
                                          Result<void> written = log->step(step, batch);
                                          if (written.ok()) return true;
                                          log_failure = written.error();
                                          return *log_failure;
                                        }));
  if (log_failure) return *std::move(log_failure);
  if (log) PENSTOCK_TRY(log->close());
  return passage;
}

void Cell::report_steps(const TrainingRun& run) {
  std::vector<double> per_second;
  for (std::size_t i = 0; i < run.steps.size(); ++i) {
    const StepTimes& step = run.steps[i];
    if (i < kStepsKept)
      trial_.sample("step_s", "s", Better::neither, "step",
                    static_cast<double>(step.end_ns - step.begin_ns) * 1e-9);
    const auto second = static_cast<std::size_t>(step.end_ns / 1'000'000'000);
    if (per_second.size() <= second) per_second.resize(second + 1, 0.0);
    per_second[second] += static_cast<double>(step.payload_bytes);
  }
  trial_.series("payload_bytes", {1.0, std::move(per_second)});
}

void Cell::report_stages(const Passage& passage, const TrainingFigures& figures) {
  std::vector<StageTally> stages = passage.stages;
  stages.push_back({"accelerator", figures.wall_s - figures.input_wait_s, figures.input_wait_s, 0});
  for (const StageTally& stage : stages) {
    trial_.value("stage_busy_s." + stage.stage, "s", Better::neither, stage.busy_s);
    trial_.value("stage_starved_s." + stage.stage, "s", Better::neither, stage.starved_s);
    trial_.value("stage_blocked_s." + stage.stage, "s", Better::neither, stage.blocked_s);
  }
}

// The loader's parts of what it was waited for, as parts of what the accelerator waited.
void Cell::report_lost(const Passage& passage, const TrainingFigures& figures) {
  double sum = 0;
  for (const LostTime& part : passage.lost) sum += part.seconds;
  for (const LostTime& part : passage.lost) {
    const double share = sum > 0 ? part.seconds / sum : part.to == "queue" ? 1 : 0;
    trial_.value("lost_s." + part.to, "s", Better::lower, share * figures.input_wait_s);
  }
}

void Cell::report(const Passage& passage, const TrainingFigures& figures) {
  trial_.value("steps", "1", Better::neither, static_cast<double>(passage.run.steps.size()));
  trial_.value("skipped_samples", "1", Better::lower, static_cast<double>(passage.losses.skipped));
  trial_.value("dropped_tail_samples", "1", Better::lower, static_cast<double>(passage.losses.dropped_tail));
  trial_.value("payload_bytes", "B", Better::neither, figures.payload_bytes);
  trial_.value("accelerators", "1", Better::neither, 1);
  if (figures.wall_s > 0) {
    trial_.value("wall_s", "s", Better::lower, figures.wall_s);
    trial_.value("samples_per_s", "1/s", Better::higher, figures.samples / figures.wall_s);
    trial_.value("payload_bytes_per_s", "B/s", Better::higher, figures.payload_bytes / figures.wall_s);
    trial_.value("first_batch_s", "s", Better::lower, figures.first_batch_s);
    trial_.value("input_wait_s", "s", Better::lower, figures.input_wait_s);
    report_steps(passage.run);
    report_stages(passage, figures);
    report_lost(passage, figures);
  }
  if (figures.utilization) trial_.value("accelerator_utilization", "1", Better::higher, *figures.utilization);
  if (figures.utilization_dlio) trial_.value("au_dlio", "1", Better::higher, *figures.utilization_dlio);
  if (figures.step_overshoot) trial_.value("step_overshoot", "1", Better::lower, *figures.step_overshoot);
  judge(passage, figures);
}

void Cell::judge(const Passage& passage, const TrainingFigures& figures) {
  if (passage.run.failure) trial_.fail(*passage.run.failure);
  if (passage.losses.skipped > 0) {
    for (const std::string& why : passage.losses.named) warn("skipped: " + why);
    if (passage.losses.skipped > passage.losses.named.size())
      warn("skipped: " + std::to_string(passage.losses.skipped - passage.losses.named.size()) + " more");
    trial_.verdict(Verdict::degraded, std::to_string(passage.losses.skipped) +
                                          " samples were skipped, the first: " +
                                          (passage.losses.named.empty() ? "" : passage.losses.named.front()));
  }
  if (figures.step_overshoot.value_or(0) > kOvershootTolerance) {
    const std::string reason = "the median step ended " + format_percent(*figures.step_overshoot) +
                               " late: this machine was too busy to emulate the accelerator" +
                               (setup_.threads > 1 ? " (fewer --threads leave it a processor)" : "");
    warn(reason);
    trial_.verdict(Verdict::client_bound, reason);
  }
}

// A queue costs something where reads come at once, and is what a tier that has one is best read by.
std::size_t Cell::depth() const {
  if (setup_.depth != 0) return setup_.depth;
  return tier_.backend->caps().async ? kDepthOfQueues : 1;
}

std::uint64_t Cell::steps_an_epoch() const {
  return corpus_.manifest.samples() / static_cast<std::uint64_t>(setup_.ranks) / setup_.batch;
}

std::uint64_t Cell::planned_steps() const {
  return setup_.limits.batches != 0 ? setup_.limits.batches : setup_.limits.epochs * steps_an_epoch();
}

// Whether the pipeline can also run by itself before the training, without leaving it another cache: because
// that is prepared anew, has nothing to change, or holds everything already. A cold cache gets warm over the
// epochs, so that more than one of them cannot be divided.
bool Cell::alone_on_both_sides(const CacheState& state) const {
  if (planned_steps() < kAloneBatches) return false;
  if (setup_.cache == CacheWish::cold) return planned_steps() <= steps_an_epoch();
  return setup_.cache == CacheWish::warm || state.client_data == "memory" ||
         state.client_data == "bypassed" || state.resident_fraction_before.value_or(0) >= kWarmAtLeast;
}

// One of `parts` samples of the pipeline without an accelerator: so many steps, or as many as fit into its
// share of the time, save for the epochs of a cold cache.
Result<TrainingRun> Cell::input_alone(std::uint64_t steps, unsigned parts) {
  const bool all = setup_.cache == CacheWish::cold && steps > steps_an_epoch();
  const std::uint64_t least = kAloneBatches / parts;
  Progress progress(setup_.progress, std::string(setup_.app->name) + "'s input alone on " + tier_.name, steps,
                    "steps");
  PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> nothing, make_accelerator("none"));
  PlanLimits limits;
  limits.batches = steps;
  const SteadyTime enough = std::chrono::steady_clock::now() + kAloneLongest / parts;
  PENSTOCK_ASSIGN(Passage passage,
                  pass(*nothing, limits, [&](std::uint64_t step, const Batch&) -> Result<bool> {
                    progress.advance(1);
                    return all || step + 1 < least || std::chrono::steady_clock::now() < enough;
                  }));
  return std::move(passage.run);
}

void Cell::report_input_alone(const std::vector<TrainingRun>& parts, std::uint64_t steps,
                              double input_wait_s) {
  double sum_s = 0;
  for (const TrainingRun& part : parts) {
    if (part.failure) return trial_.fail(*part.failure);
    const double part_s = input_alone_s(part, steps);
    trial_.value("input_alone_s", "s", Better::lower, part_s);
    sum_s += part_s;
  }
  trial_.value("input_overlap", "1", Better::higher,
               input_overlap(input_wait_s, sum_s / static_cast<double>(parts.size())));
}

Result<void> Cell::measure() {
  PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> accelerator,
                  make_accelerator(setup_.accelerator, setup_.seed));
  const std::chrono::nanoseconds step = accelerator->nominal_step();
  describe(step);
  std::optional<SampleLog> log;
  if (!setup_.sample_log.empty()) {
    PENSTOCK_ASSIGN(log, SampleLog::open(log_path(), setup_.rank));
  }
  PENSTOCK_ASSIGN(CacheOutcome cache, cache_.prepare());
  std::vector<TrainingRun> alone;
  const bool both_sides = step.count() > 0 && alone_on_both_sides(cache.state);
  if (both_sides) {
    PENSTOCK_ASSIGN(TrainingRun before, input_alone(planned_steps() / 2, 2));
    alone.push_back(std::move(before));
    PENSTOCK_ASSIGN(cache, cache_.prepare());
  }
  trial_.cache(cache.state);
  trial_.verdict(cache.verdict, cache.reason);
  const std::optional<std::uint64_t> device_before = device_bytes_read();
  PENSTOCK_ASSIGN(const Passage passage, train(*accelerator, std::move(log)));
  const std::optional<std::uint64_t> device_after = device_bytes_read();
  const TrainingFigures figures = penstock::figures(passage.run, step);
  if (device_before && device_after && figures.payload_bytes > 0 && cache.state.client_data != "memory") {
    cache.state.device_bytes_fraction =
        static_cast<double>(*device_after - *device_before) / figures.payload_bytes;
    trial_.cache(cache.state);
  }
  report(passage, figures);
  if (step.count() > 0 && !passage.run.failure && !passage.run.steps.empty()) {
    const std::uint64_t steps = passage.run.steps.size();
    if (setup_.cache != CacheWish::asis) PENSTOCK_TRY(cache_.prepare());
    PENSTOCK_ASSIGN(TrainingRun after,
                    input_alone(both_sides ? steps - steps / 2 : steps, both_sides ? 2 : 1));
    alone.push_back(std::move(after));
    report_input_alone(alone, steps, figures.input_wait_s);
  }
  trial_.value("peak_memory_bytes", "B", Better::lower, peak_memory_bytes());
  trial_.value("tier_bytes_read", "B", Better::neither,
               static_cast<double>(tier_.backend->moved_bytes().read + cache_.warmed_bytes()));
  return {};
}

}  // namespace

Result<Sampler> make_sampler(const TrainSetup& setup, const Corpus& corpus) {
  const Sampler sampler(corpus.manifest.samples(), setup.shuffle, setup.seed, setup.rank, setup.ranks);
  if (sampler.per_epoch() < setup.batch) {
    const std::string count = format_count(sampler.per_epoch());
    return make_error(Errc::invalid_argument, "'" + corpus.name + "' has " + count +
                                                  " samples, fewer than one batch of " +
                                                  std::to_string(setup.batch) + ": choose --batch " +
                                                  std::to_string(sampler.per_epoch()) + " or smaller");
  }
  return sampler;
}

Result<void> measure_training(const TrainSetup& setup, const Corpus& corpus, const Tier& tier,
                              BatchPool& pool, Trial& trial) {
  PENSTOCK_ASSIGN(const SampleList samples, corpus_samples(corpus.manifest));
  const Result<void> measured = Cell(setup, corpus, samples, tier, pool, trial).measure();
  trial.tier("data", tier);  // with what was called there
  return measured;
}

}  // namespace penstock
