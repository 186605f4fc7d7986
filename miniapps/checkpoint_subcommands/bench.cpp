// penstock checkpoint bench: compares up to three ways to save: straight to the slow tier, through the fast
// tier, and by a copy in memory. Each way is an arm. In each repeat the arms run one after the other, in
// random order.
#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "miniapps/checkpoint/saving_record.hpp"
#include "miniapps/checkpoint_subcommands/bench_runs.hpp"
#include "miniapps/checkpoint_subcommands/bench_setup.hpp"
#include "miniapps/checkpoint_subcommands/checkpoint_options.hpp"
#include "miniapps/checkpoint_subcommands/saving_run.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"
#include "results/record/store.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

class Bench {
 public:
  Bench(const CommandContext& context, const BenchSetup& setup, Run& run, PayloadState& state)
      : context_(context),
        setup_(setup),
        run_(run),
        state_(state),
        order_(context.seed, "checkpoint.bench") {}

  // Adds the parts of measure() to the plan. Collective.
  void plan_time() {
    const bool is_root = context_.communicator.root();  // the others follow its times
    const TimeRange slow_s = is_root ? estimate_write_time(setup_.slow(), setup_) : TimeRange{};
    const TimeRange fast_s =
        is_root && setup_.fast() != nullptr ? estimate_write_time(*setup_.fast(), setup_) : TimeRange{};
    TimeRange round;
    for (const std::string_view arm : setup_.arms) round += saving_time(arm, setup_, slow_s, fast_s);
    const auto arms = double(setup_.arms.size());
    run_.plan().add({.name = std::string(kRunsPart),
                     .asked = setup_.repeat * setup_.arms.size(),
                     .each = 1 / arms * round,
                     .least = setup_.arms.size(),
                     .group = setup_.arms.size()});
    // Without time for the ceilings of a round, those of the round before apply.
    run_.plan().add({.name = std::string(kCeilingsPart),
                     .asked = setup_.repeat,
                     .each = 2 * (slow_s + fast_s),
                     .least = 1});
  }

  Result<void> measure() {
    const uint64_t arm_runs = setup_.repeat * setup_.arms.size();
    Progress progress(context_.output.progress && context_.communicator.root(), "checkpoint bench",
                      arm_runs * setup_.steps, "steps");
    for (uint64_t pair = 0; pair < setup_.repeat; ++pair) {
      const std::string round = fmt::format("{} of {}", pair + 1, setup_.repeat);
      progress.set_note("the ceilings of the tiers");
      if (run_.plan().begin(kCeilingsPart, "ceilings " + round)) PENSTOCK_TRY(measure_ceilings());
      std::vector<std::string_view> arms = setup_.arms;
      for (size_t left = arms.size(); left > 1; --left)
        std::swap(arms[left - 1], arms[order_.below(pair * arms.size() + left, left)]);
      for (const std::string_view arm : arms)
        if (run_.plan().begin(kRunsPart, fmt::format("{} {}", arm, round)))
          PENSTOCK_TRY(run_arm(arm, pair, progress));
    }
    run_.plan().end();
    return success();
  }

 private:
  // Measures the tier's ceiling twice and returns the higher rate, since the speed of a device varies.
  Result<double> measure_ceiling(const Tier& tier) {
    PENSTOCK_ASSIGN(const double first, write_ceiling(tier, state_, context_.communicator));
    PENSTOCK_ASSIGN(const double second, write_ceiling(tier, state_, context_.communicator));
    return std::max(first, second);
  }

  static constexpr std::string_view kRunsPart = "runs";
  static constexpr std::string_view kCeilingsPart = "ceilings";

  Result<void> measure_ceilings() {
    PENSTOCK_ASSIGN(slow_ceiling_, measure_ceiling(setup_.slow()));
    if (setup_.fast() == nullptr) return success();
    PENSTOCK_ASSIGN(fast_ceiling_, measure_ceiling(*setup_.fast()));
    return success();
  }

  Result<void> run_arm(std::string_view arm, uint64_t pair, Progress& progress) {
    progress.set_note(fmt::format("{}, {} of {}", arm, pair + 1, setup_.repeat));
    Trial trial = run_.trial();
    trial.parameter("arm", std::string(arm));
    trial.parameter("payload", setup_.payload.name);
    trial.parameter("payload_bytes", setup_.payload.bytes);
    trial.parameter("keep", setup_.policy.keep_on_slow);
    trial.tier("checkpoint", setup_.slow());
    const bool has_fast = arm != kDirectArm && setup_.fast() != nullptr;
    TierActivity& activity = *(has_fast ? *setup_.fast() : setup_.slow()).activity;  // where saves go first
    activity.repeat = pair + 1;
    if (has_fast) trial.tier("burst_buffer", *setup_.fast());
    if (!context_.options.given("pair")) trial.pair(suite_, pair, arm);
    const Result<SavingRun> done = run_saving(arm, bench_run_name(arm, mix64(context_.seed + pair)), setup_,
                                              state_, context_.communicator, [&] { progress.advance(1); });
    if (done.ok()) {
      activity.operations += done->counts.saves - done->counts.skips;
      record(*done, has_fast, arm == kSnapshotArm, trial);
    } else {
      ++activity.errors;
      record_failure(arm, done.error(), trial);
    }
    run_.add(std::move(trial));
    if (!done.ok() && done.error().code == Errc::interrupted) return done.error();
    return success();
  }

  static void record_failure(std::string_view arm, const Error& error, Trial& trial) {
    trial.fail(error);
    if (error.code != Errc::interrupted) warn(fmt::format("{}: {}", arm, error.message()));
  }

  void record(const SavingRun& done, bool has_fast, bool by_snapshot, Trial& trial) const {
    trial.sample(bench_metrics::kCeilingOf, "slow", slow_ceiling_);
    if (has_fast) trial.sample(bench_metrics::kCeilingOf, "fast", *fast_ceiling_);
    trial.sample(shared_metrics::kWall, done.wall_s);
    trial.sample(bench_metrics::kFinalize, done.finalize_s);
    for (const Period& step : done.steps) trial.sample(saving_metrics::kStep, step.end_s - step.begin_s);
    if (setup_.burner) {
      trial.sample(accelerator_metrics::kBurnRate, setup_.burner->rounds_per_s());
      trial.sample(accelerator_metrics::kBurnSpread, setup_.burner->spread());
    }
    const double payload_bytes = double(setup_.payload.bytes) * double(done.counts.saves - done.counts.skips);
    if (payload_bytes > 0 && context_.communicator.size() == 1)
      trial.sample(bench_metrics::kWriteAmplification,
                   double(done.slow.written + done.fast.written) / payload_bytes);
    trial.series(bench_metrics::kSlowWritten, done.interval_s, done.slow_bytes);
    if (has_fast) trial.series(bench_metrics::kFastWritten, done.interval_s, done.fast_bytes);
    trial.series(bench_metrics::kStepsEnded, done.interval_s, steps_ended(done));
    record_saving({.checkpoints = done.checkpoints,
                   .counts = done.counts,
                   .steps = done.steps,
                   .wall_s = done.wall_s,
                   .has_fast_tier = has_fast,
                   .fast_is_volatile = has_fast && is_volatile(*setup_.fast()),
                   .by_snapshot = by_snapshot,
                   .steps_are_work = setup_.burner != nullptr,
                   .mtbf_s = setup_.mtbf_s,
                   .time_to_durable = bench_metrics::kTimeToDurable,
                   .fast_ceiling = fast_ceiling_,
                   .slow_ceiling = slow_ceiling_},
                  trial);
    if (!by_snapshot) check_ceilings(done, has_fast, trial);
  }

  // Marks the record if a save or a drain was faster than the ceiling: the ceiling was then measured too low.
  void check_ceilings(const SavingRun& done, bool has_fast, Trial& trial) const {
    constexpr double kTolerance = 1.02;
    for (const CheckpointTimes& one : done.checkpoints) {
      const auto bytes = double(one.bytes);
      if (one.skipped) continue;
      const double ceiling = has_fast ? *fast_ceiling_ : slow_ceiling_;
      const bool save_too_fast =
          one.block_s > 0 && (!has_fast || one.fast_s) && bytes / one.block_s > kTolerance * ceiling;
      const bool drain_too_fast =
          one.drain_s && *one.drain_s > 0 && bytes / *one.drain_s > kTolerance * slow_ceiling_;
      if (!save_too_fast && !drain_too_fast) continue;
      trial.verdict(
          Verdict::ceiling_invalid,
          fmt::format("the checkpoint of step {} was {} faster than the measured ceiling of the {} tier",
                      one.id.step, save_too_fast ? "saved" : "drained",
                      save_too_fast && has_fast ? "fast" : "slow"));
      return;
    }
  }

  static std::vector<double> steps_ended(const SavingRun& done) {
    std::vector<double> steps_per_interval(done.slow_bytes.size());
    for (const Period& step : done.steps) {
      if (steps_per_interval.empty()) break;
      const auto interval = size_t(step.end_s / done.interval_s);
      steps_per_interval[std::min(interval, steps_per_interval.size() - 1)] += 1;
    }
    return steps_per_interval;
  }

  const CommandContext& context_;
  const BenchSetup& setup_;
  Run& run_;
  PayloadState& state_;
  const RandomStream order_;
  double slow_ceiling_ = 0;  // bytes per second; measured again before each round of the arms
  std::optional<double> fast_ceiling_;
  const std::string suite_ = "checkpoint-" + random_id(8);  // random, so that no other bench has this name
};

// The locks of begin_bench() on all tiers. The destructor calls end_bench().
class BenchLocks {
 public:
  explicit BenchLocks(const BenchSetup& setup) : setup_(setup) {}
  ~BenchLocks() {
    for (size_t i = 0; i < locks_.size(); ++i)
      if (const Result<void> ended = end_bench(setup_.tiers[i], std::move(locks_[i])); !ended.ok())
        warn(ended.error().message());
  }
  BenchLocks(const BenchLocks&) = delete;
  BenchLocks& operator=(const BenchLocks&) = delete;

  Result<void> take() {
    for (const Tier& tier : setup_.tiers) {
      PENSTOCK_ASSIGN(auto lock, begin_bench(tier));
      locks_.push_back(std::move(lock));
    }
    return success();
  }

 private:
  const BenchSetup& setup_;
  std::vector<std::unique_ptr<Lock>> locks_;
};

// Removes the runs of killed benches from the stores. Skips a tier that has no store yet.
Result<void> sweep_dead_runs(const BenchSetup& setup) {
  for (const Tier& tier : setup.tiers) {
    PENSTOCK_ASSIGN(const std::unique_ptr<CheckpointStore> store, open_if_there(tier));
    if (store != nullptr) PENSTOCK_TRY(outcome_of(sweep_bench_runs(*store)));
  }
  return success();
}

Result<int> run_bench(const CommandContext& context) {
  Communicator& ranks = context.communicator;
  const Result<BenchSetup> resolved = resolve_bench(context);
  PENSTOCK_TRY(all_ok(ranks, resolved));
  const BenchSetup& setup = *resolved;
  const auto rank = uint64_t(ranks.rank());
  const SignalsForAll signals(ranks);
  BenchLocks locks(setup);
  PENSTOCK_TRY(on_root(ranks, [&] { return locks.take(); }));
  PENSTOCK_TRY(on_root(ranks, [&] { return sweep_dead_runs(setup); }));
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  for (const Tier& tier : setup.tiers) run.check_tier(tier);
  Result<std::unique_ptr<PayloadState>> state =
      PayloadState::make(setup.payload.shard(rank, uint64_t(ranks.size())), rank, context.seed);
  PENSTOCK_TRY(all_ok(ranks, state));
  if (setup.burner) {
    PENSTOCK_TRY(ranks.barrier());  // all ranks calibrate together, since they also work together
    PENSTOCK_TRY(all_ok(ranks, setup.burner->calibrate()));
  }
  Bench bench(context, setup, run, **state);
  bench.plan_time();
  PENSTOCK_TRY(run.plan().settle("fewer --steps, or a smaller --payload"));
  const Result<void> measured = bench.measure();
  PENSTOCK_TRY(run.inspect_ranks());
  if (!context.output.json && ranks.root())
    print_text(bench_report(setup, ranks.size(), run.records(), context.output));
  PENSTOCK_TRY(run.finish());
  PENSTOCK_TRY(measured);
  return run.exit_code();
}

constexpr std::string_view kTrainingGroup = "The training";
constexpr OptionSpec kBenchOptions[] = {
    kPayloadOption,
    kBurstBufferOption,
    {.name = "steps",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "100",
     .help = "of the training",
     .group = kTrainingGroup,
     .at_least = 1},
    {.name = "every",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "20",
     .help = "steps between two checkpoints",
     .group = kTrainingGroup,
     .at_least = 1},
    {.name = "step-time",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "100ms",
     .help = "duration of a step without checkpoints",
     .group = kTrainingGroup},
    {.name = "burn",
     .role = OptionRole::work,
     .type = OptionType::real,
     .value = "CPUS",
     .fallback = "1",
     .help = "CPUs that each step keeps busy with a fixed amount of work, calibrated to --step-time; a drain "
             "that uses CPU time then makes steps longer. 0: steps sleep, and step inflation is not measured",
     .group = kTrainingGroup,
     .at_least = 0},
    {.name = "arms",
     .role = OptionRole::work,
     .value = "LIST",
     .help = "arms to compare, interleaved in random order: direct, burst-buffer, snapshot (copy to memory, "
             "then write) (default: direct, and burst-buffer with --burst-buffer)",
     .group = kTrainingGroup},
    kTimeLimitOption,
    {.name = "repeat",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "repeats of each arm; the ceilings of the tiers are measured again each time",
     .group = kTrainingGroup,
     .at_least = 1},
    {.name = "mtbf",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "24h",
     .help = "mean time between failures, for the recommended checkpoint interval",
     .group = kTrainingGroup},
    kOnFullOption,
    kOnFullTimeoutOption,
    kOversizeOption,
    kHeadroomOption,
    kReadBackOption,
    keep_option("number of durable checkpoints to keep, including the newest (default 5)"),
    keep_fast_option("number of durable checkpoints to keep on the fast tier as well (default 1)"),
};

}  // namespace

extern const CommandInfo checkpoint_bench;
const CommandInfo checkpoint_bench{
    .name = "checkpoint bench",
    .summary = "measure a training run that saves checkpoints regularly",
    .options = kBenchOptions,
    .run = &with_locks<run_bench>,
    .synopsis =
        "penstock checkpoint bench STORE [--burst-buffer TIER] [--payload NAME|SIZE] [--arms LIST] [options]",
    .examples = {"penstock checkpoint bench /pfs/ckpt --burst-buffer /dev/shm/bb   # directly, and through "
                 "the burst buffer",
                 "penstock checkpoint bench /pfs/ckpt --payload 2GiB --steps 50 --every 10   # how much time "
                 "checkpoints cost"},
    .arguments = "STORE...",
    .measures = true,
    .runs_on_ranks = true,
};

}  // namespace penstock
