// `penstock train`: runs the input pipeline of a mini-app with an accelerator, and measures it on each tier.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datagen/corpus/shared_corpus.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/tiers/live_tiers.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "miniapps/train/cell_run.hpp"
#include "miniapps/train/find_accelerators.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/resume.hpp"
#include "miniapps/train/step_checkpoints.hpp"
#include "miniapps/train/train_corpus.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/train_options.hpp"
#include "miniapps/train/train_plan.hpp"
#include "miniapps/train/train_report.hpp"
#include "miniapps/train/train_team.hpp"
#include "miniapps/train/train_time.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

// Measures the tiers one after the other. All ranks of the plan call measure() together. Each tier gets a
// record in `run`, also if it fails. measure() returns an error only if its cause is not the tier. `plan` and
// `run` must outlive the object. If measure() returns false (a call hangs, see measure_training()), the
// object must exist until the process ends.
class TrainRuns {
 public:
  TrainRuns(TrainPlan& plan, Run& run) : plan_(plan), run_(run) {}

  Result<bool> measure(const Tier& tier);
  // Adds a record with the reason why the tier is not measured.
  void record_skipped(const Tier& tier, const std::string& why);

 private:
  Result<bool> uses_samples_in_place(const Tier& tier);
  Result<void> make_pool(const Tier& tier);
  Result<bool> train(const Tier& tier, Trial& trial);
  Result<bool> add_trial(Trial trial, bool ended);

  TrainPlan& plan_;
  Run& run_;
  std::set<std::string> reported_copied_;  // tiers for which a note has said that samples are copied
  // Memory for batches. Its shape depends on the plan's current number of accelerators and on the last
  // measured tier.
  std::optional<BatchPool> pool_;
};

// Collective. Whether the samples of the tier are used in place, without a copy; the same on all ranks.
Result<bool> TrainRuns::uses_samples_in_place(const Tier& tier) {
  if (plan_.transform().slot_bytes != 0) return false;
  const std::string_view why = plan_.why_copied(tier);
  uint64_t in_place = why.empty() ? 1 : 0;
  PENSTOCK_TRY(plan_.ranks->all_reduce(std::span(&in_place, 1), Reduction::min));
  if (in_place == 0 && tier.backend->caps().zero_copy && reported_copied_.insert(tier.name).second)
    note("samples of '" + tier.name + "' are copied instead of used in place: " +
         std::string(why.empty() ? "another rank must copy" : why));
  return in_place != 0;
}

// Collective. Makes the pool for the tier, unless it has the right shape already. Fails on all ranks or on
// none.
Result<void> TrainRuns::make_pool(const Tier& tier) {
  PENSTOCK_ASSIGN(const bool in_place, uses_samples_in_place(tier));
  const BatchShape shape = plan_.batch_shape(in_place);
  if (pool_ && pool_->shape() == shape) return success();
  pool_.reset();
  Result<BatchPool> new_pool = BatchPool::make(shape, plan_.pool_prefetch());
  PENSTOCK_TRY(all_ok(*plan_.ranks, new_pool));
  pool_ = *std::move(new_pool);
  return success();
}

Result<bool> TrainRuns::train(const Tier& tier, Trial& trial) {
  PENSTOCK_TRY(make_pool(tier));
  return measure_training(plan_, tier, *pool_, trial);
}

// Adds the trial to `run`, and returns `ended`. If `ended` is false, a call hangs on a rank. Then
// inspect_ranks() is not called: it is collective, and that rank would not call it.
Result<bool> TrainRuns::add_trial(Trial trial, bool ended) {
  if (verdict_exit_code(trial.record().verdict) == 1 && !interrupted())
    warn(trial.record().tiers.value("data", Json::object()).value("name", "") + ": " + trial.record().reason);
  const Result<void> inspected = ended ? run_.inspect_ranks() : success();
  run_.add(std::move(trial));
  if (!inspected.ok()) return inspected.error();
  return ended;
}

Result<bool> TrainRuns::measure(const Tier& tier) {
  if (!begin_part(plan_, plan_.searches_accelerators ? kSearchPart : kTrainingPart, tier)) {
    record_skipped(tier, plan_.time_plan->limit_text() + " leaves no time for this tier");
    return true;
  }
  run_.check_tier(tier);
  if (plan_.searches_accelerators) {
    return find_accelerators(
        plan_, run_, [&](Trial& trial) { return train(tier, trial); },
        [&](Trial trial, bool ended, const std::string& sentence) {
          if (!sentence.empty()) note(sentence);
          return add_trial(std::move(trial), ended);
        });
  }
  Trial trial = run_.trial();
  Result<bool> measured = train(tier, trial);
  if (measured.ok()) return add_trial(std::move(trial), *measured);
  trial.fail(measured.error());
  run_.add(std::move(trial));
  return measured;
}

void TrainRuns::record_skipped(const Tier& tier, const std::string& why) {
  Trial trial = run_.trial();
  trial.parameter("app", plan_.app->name);
  trial.parameter("tier", tier.name);
  trial.tier("data", tier);
  trial.verdict(Verdict::skipped, why);
  run_.add(std::move(trial));
}

Result<bool> measure_all(const TrainPlan& plan, TrainRuns& runs) {
  std::vector<const Tier*> tiers;
  if (!plan.only_other_tiers) tiers.push_back(&plan.corpus.tier);
  for (const Tier& tier : plan.other_tiers) tiers.push_back(&tier);
  const Tier* stuck_tier = nullptr;
  for (const Tier* tier : tiers) {
    if (stuck_tier != nullptr) {
      runs.record_skipped(
          *tier, "not measured: '" + stuck_tier->name + "' was abandoned, and its reads are still in flight");
      continue;
    }
    PENSTOCK_TRY(all_ok(*plan.ranks, check_interrupt()));
    PENSTOCK_ASSIGN(const bool ended, runs.measure(*tier));
    if (!ended) stuck_tier = tier;
  }
  return stuck_tier == nullptr;
}

// Ends the process although threads hang in calls: does not join them, and does not free what they use.
[[noreturn]] void end_process(Communicator& ranks, int exit_code) {
  static_cast<void>(std::fflush(nullptr));
  static_cast<void>(ranks.barrier());  // wait until all ranks have written their output
  ranks.abandon(exit_code);
  std::_Exit(exit_code);
}

// Called if the checkpoints of the run cannot be found or opened before the training. Prints the error and
// returns the exit code of `penstock checkpoint` for it. Some errors are returned unchanged: the main program
// has exit codes for them.
Result<int> end_before_training(const CommandContext& context, const Error& error) {
  const bool keeps_its_exit_code = error.code == Errc::invalid_argument || error.code == Errc::interrupted;
  const bool is_locked = error.code == Errc::busy;
  if (keeps_its_exit_code || (!is_locked && !context.options.flag("resume"))) return error;
  report_failed(context, error);
  return is_locked ? kRunLocked : kNothingRestorable;
}

// Makes the tiers of checkpoints visible to --metrics-port while the returned tokens exist.
std::vector<std::shared_ptr<void>> watch_checkpoint_tiers(const TrainPlan& plan, LiveTiers* live_tiers) {
  std::vector<std::shared_ptr<void>> tokens;
  if (live_tiers == nullptr) return tokens;
  if (plan.saving) tokens.push_back(live_tiers->add(plan.saving->slow));
  if (plan.saving && plan.saving->fast) tokens.push_back(live_tiers->add(*plan.saving->fast));
  if (plan.checkpoint_tier) tokens.push_back(live_tiers->add(*plan.checkpoint_tier));
  return tokens;
}

Result<int> train(const CommandContext& context, const MiniAppInfo& app) {
  const Options& options = context.options;
  std::optional<SignalsForAll> signals;  // destroyed after the plan, whose checkpoints may still drain
  Result<TrainRequest> request = parse_request(context, app);
  PENSTOCK_TRY(all_ok(context.communicator, request));
  for (const std::string& sentence : std::exchange(request->notes, {})) note(sentence);
  Result<TrainPlan> plan_result = make_plan(*std::move(request), options);
  PENSTOCK_TRY(all_ok(context.communicator, plan_result));
  TrainPlan& plan = *plan_result;
  for (const std::string& sentence : plan.notes) note(sentence);
  if (context.communicator.size() > 1) PENSTOCK_TRY(check_same_work(plan, options));
  PENSTOCK_TRY(
      check_shared_corpus(context.communicator, plan.corpus, plan.files() != nullptr ? "files" : "samples"));
  for (const std::string& warning : compare_with_workload(plan)) warn(warning);
  PENSTOCK_TRY(check_epoch_size(plan));
  for (const std::string& sentence : note_omissions(plan)) note(sentence);

  signals.emplace(context.communicator);
  if (plan.saving) {
    const Result<std::string> found = find_run(plan);
    if (!found.ok()) return end_before_training(context, found.error());
    if (!found->empty()) note(*found);
    const Result<void> opened = open_checkpoints(plan);
    if (!opened.ok() && opened.error().code == Errc::busy)
      return end_before_training(context, opened.error());
    PENSTOCK_TRY(opened);
    if (plan.planned_steps() == 0) {  // no step is left, but checkpoints may have to be drained
      note("run '" + plan.saving->policy.run +
           "' has completed all its steps: raise --steps or --epochs, which count from the start of the run");
      PENSTOCK_TRY(plan.saving->checkpoints->drain_or_leave());
      return 0;
    }
  }
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  plan.time_plan = &run.plan();
  plan_training_time(plan);
  PENSTOCK_TRY(run.plan().settle("fewer --steps"));
  plan.progress |= run.plan().logs_steps();
  const std::vector<std::shared_ptr<void>> watched = watch_checkpoint_tiers(plan, context.live_tiers);
  TrainRuns runs(plan, run);
  const Result<bool> measured = measure_all(plan, runs);
  const Result<std::string> written = run.finish();
  if (!context.output.json && context.communicator.root())
    print_text(training_report(run.records(), context.output));
  if (measured.ok() && !*measured) {
    if (!written.ok()) warn(written.error().message());
    end_process(context.communicator, interrupted() ? 128 + interrupt_signal() : run.exit_code());
  }
  PENSTOCK_TRY(written);
  if (!measured.ok() && measured.error().code != Errc::interrupted) return measured.error();
  return run.exit_code();
}

Result<int> run(const CommandContext& context) {
  const Options& options = context.options;
  if (options.flag("list")) {
    print_text(list_miniapps(context.output.json));
    return 0;
  }
  if (context.positionals.empty())
    return make_error(Errc::invalid_argument, "name a mini-app; to list them: penstock train --list");
  PENSTOCK_ASSIGN(const MiniAppInfo* app, miniapp_registry().find(context.positionals[0]));
  if (!options.flag("resume") || options.given("seed")) return train(context, *app);
  const auto saving = step_saving(options, context.named_tiers);
  PENSTOCK_TRY(all_ok(context.communicator, saving));
  const Result<uint64_t> seed = seed_of_run(**saving, context.communicator);
  if (!seed.ok()) return end_before_training(context, seed.error());
  CommandContext seeded_context = context;
  seeded_context.seed = *seed;
  return train(seeded_context, *app);
}

Result<TimeRange> expected_train_time(const CommandContext& context) {
  if (context.positionals.empty()) return TimeRange{};
  PENSTOCK_ASSIGN(const MiniAppInfo* app, miniapp_registry().find(context.positionals[0]));
  PENSTOCK_ASSIGN(TrainRequest request, parse_request(context, *app));
  PENSTOCK_ASSIGN(TrainPlan plan, make_plan(std::move(request), context.options));
  PENSTOCK_TRY(check_epoch_size(plan));
  TimePlan time_plan(context);
  plan.time_plan = &time_plan;
  plan_training_time(plan);
  return time_plan.planned_time();
}

constexpr std::string_view kFindings[] = {"restart",     "resumed_step",       "resumed_from",
                                          "fed_so_far",  "one_more_missed_by", "accelerators_at_most",
                                          "rank_scaling"};

}  // namespace

extern const CommandInfo command_train;
const CommandInfo command_train{
    .name = "train",
    .summary =
        "run a mini-app's input pipeline with an emulated accelerator; report samples/s and accelerator "
        "utilization",
    .options = kTrainOptions,
    .run = &run,
    .synopsis =
        "penstock train APP --data CORPUS [options] | penstock train dlio --workload FILE [++KEY=VALUE...] | "
        "train --list",
    .examples =
        {"penstock train alexnet --data corpora/imagenet --prefetch 4   # as fast as the pipeline delivers",
         "penstock train alexnet --data photos --scan --steps 50 --accelerator emulated:step=100ms   # does "
         "the accelerator wait?"},
    .arguments = "[APP]...",
    .measures = true,
    .runs_on_ranks = true,
    .findings = kFindings,
    .metrics = train_metrics::kAll,
    .expected_time = expected_train_time};

}  // namespace penstock
