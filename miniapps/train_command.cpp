// `penstock train`: the input pipeline of a mini-app in front of an accelerator, measured on each tier.
#include <bit>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "datagen/cache/cache_control.hpp"
#include "datagen/commands/command_output.hpp"
#include "datagen/corpus/corpus.hpp"
#include "datagen/corpus/shared_corpus.hpp"
#include "datagen/format/sample_opener.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/descriptor_limit.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/train/epoch_checkpoints.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/resume.hpp"
#include "miniapps/train/step_checkpoints.hpp"
#include "miniapps/train/train_cell.hpp"
#include "miniapps/train/train_input.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/train_options.hpp"
#include "miniapps/train/train_report.hpp"
#include "miniapps/train/train_runs.hpp"
#include "miniapps/train/train_setup.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

// "raw samples of 3072 bytes in cifar (generate cifar10)"; "" is not known, or does not matter.
std::string kind_text(std::string_view codec, const std::string& bytes, std::string_view format,
                      std::string_view recipe) {
  std::string words = codec.empty() ? "samples" : std::string(codec) + " samples";
  if (!bytes.empty()) words += " of " + bytes + " bytes";
  if (!format.empty()) words += " in " + std::string(format);
  if (!recipe.empty()) words += " (generate " + std::string(recipe) + ")";
  return words;
}

// A corpus of something else than the app takes is a mistake. A scan knows no format and no recipe, and may
// have found a mixture, whose odd ones then fail one by one.
Result<void> check_kind(const MiniAppInfo& app, const Corpus& corpus) {
  const ManifestFacts& facts = corpus.manifest.facts();
  if (!app.codec.empty()) PENSTOCK_TRY(SampleOpener::make(facts.codec));
  const std::string codec(payload_codec(facts.codec));
  const bool scanned = facts.recipe == "scan";
  const bool decodes = app.codec.empty() || codec.empty() || codec == "mixed" ||
                       ("|" + std::string(app.codec) + "|").find("|" + codec + "|") != std::string::npos;
  const bool in_format = app.format.empty() || scanned || facts.format == app.format;
  const bool of_recipe = app.recipe.empty() || scanned || facts.recipe == app.recipe;
  const bool as_large = app.sample_bytes == 0 || corpus.manifest.largest_sample() == app.sample_bytes;
  if (decodes && in_format && of_recipe && as_large) return success();
  return make_error(
      Errc::invalid_argument,
      "'" + corpus.name + "' holds " +
          kind_text(codec, as_large ? "" : "up to " + std::to_string(corpus.manifest.largest_sample()),
                    scanned ? "" : facts.format, scanned ? "" : facts.recipe) +
          "; " + std::string(app.name) + " takes " +
          kind_text(app.codec, app.sample_bytes == 0 ? "" : std::to_string(app.sample_bytes), app.format,
                    app.recipe));
}

// PNG has no parts that could be decoded alone: an option without effect is a mistake. Where a corpus holds
// JPEG too, it is a note.
Result<void> check_decode(const MiniAppInfo& app, const std::string& decode, const Corpus& corpus) {
  if (!app.pictures || decode == "full") return success();
  const std::string_view codec = payload_codec(corpus.manifest.facts().codec);
  if (codec == "mixed")
    note("'" + corpus.name + "' holds several kinds of samples: --decode " + decode +
         " is for JPEG, and PNG is decoded whole");
  if (codec != "png") return success();
  return make_error(Errc::invalid_argument, "'" + corpus.name +
                                                "' holds png samples, which are decoded whole: leave out "
                                                "--decode " +
                                                decode +
                                                (decode == "crop" ? ", and add --set crop=random" : ""));
}

Result<CellEnd> measure_all(const TrainSetup& setup, const Corpus& corpus, const std::vector<Tier>& others,
                            TrainRuns& runs) {
  std::vector<const Tier*> tiers{&corpus.tier};
  for (const Tier& tier : others) tiers.push_back(&tier);
  const Tier* stuck = nullptr;
  for (const Tier* tier : tiers) {
    if (stuck != nullptr) {
      runs.skip(*tier, "not measured: '" + stuck->name + "' was given up, and is still being waited for");
      continue;
    }
    PENSTOCK_TRY(agree(*setup.ranks, check_interrupt()));
    PENSTOCK_ASSIGN(const CellEnd end,
                    setup.find_accelerators ? runs.find_accelerators(*tier) : runs.measure(*tier));
    if (end == CellEnd::stuck) stuck = tier;
  }
  return stuck == nullptr ? CellEnd::done : CellEnd::stuck;
}

// Threads hang in calls that cannot be ended: they are neither joined nor is what they use freed.
[[noreturn]] void leave(Communicator& ranks, int exit_code) {
  static_cast<void>(std::fflush(nullptr));
  static_cast<void>(ranks.barrier());  // all have written what they have
  ranks.abandon(exit_code);
  std::_Exit(exit_code);
}

// What a workload names lies as DLIO has made it, without a manifest, or as `generate` has.
Result<Corpus> open_data(const Options& options, const TrainSetup& setup) {
  if (setup.data.empty()) return make_error(Errc::invalid_argument, "train needs --data CORPUS");
  OpenCorpus how{.scan = options.flag("scan"),
                 .manifest_file = options.text("manifest"),
                 .threads = setup.threads,
                 .types = options.text("types")};
  Result<Corpus> opened = open_corpus(setup.data, how);
  if (opened.ok() || opened.error().code != Errc::not_found || setup.workload.empty() || how.scan ||
      !how.manifest_file.empty())
    return opened;
  how.scan = true;
  return open_corpus(setup.data, how);
}

// What is written about the work, all of which must be the same on all ranks.
std::string option_list(const Options& options, const TrainSetup& setup) {
  std::string words = std::string(setup.app->name) + "|" + setup.accelerator + "|" + setup.workload;
  for (const std::string& word : options.texts("set")) words += "|" + word;
  for (const char* name : {"decode", "resize", "on-error", "payload", "run"})
    words += "|" + options.text(name);
  if (setup.files && setup.files->plan.validation)
    words += "|" + setup.files->plan.validation->set.files.manifest.checksum();
  return words;
}

// A job whose ranks were told different things measures nothing, or never ends.
Result<void> check_same_work(const Options& options, const TrainSetup& setup, std::size_t others) {
  const std::string words = option_list(options, setup);
  const std::vector<std::uint64_t> numbers{crc32c(std::as_bytes(std::span(words))),
                                           setup.batch,
                                           setup.accelerators,
                                           setup.prefetch,
                                           setup.limits.batches,
                                           setup.limits.epochs,
                                           static_cast<std::uint64_t>(setup.shuffle.kind),
                                           setup.shuffle.places,
                                           setup.seed,
                                           static_cast<std::uint64_t>(setup.cache),
                                           setup.find_accelerators ? 1U : 0U,
                                           std::bit_cast<std::uint64_t>(setup.busy_at_least),
                                           setup.sample_log.empty() ? 0U : 1U,
                                           setup.timeline.empty() ? 0U : 1U,
                                           setup.checkpoints ? 1U : 0U,
                                           setup.saving ? setup.saving->every : 0U,
                                           setup.saving ? setup.saving->payload.bytes : 0U,
                                           setup.saving && setup.saving->fast ? 1U : 0U,
                                           setup.saving && setup.saving->resume ? 1U : 0U,
                                           others};
  std::vector<std::uint64_t> least = numbers;
  std::vector<std::uint64_t> most = numbers;
  PENSTOCK_TRY(setup.ranks->all_reduce(std::span(least), Reduction::min));
  PENSTOCK_TRY(setup.ranks->all_reduce(std::span(most), Reduction::max));
  if (least == most) return success();
  return make_error(
      Errc::invalid_argument,
      "the ranks were started with different flags: but for where data lie, all must do the same work");
}

// What a workload says of its data, and what is there.
void compare_with_workload(const TrainSetup& setup, const Corpus& corpus) {
  if (setup.described_samples == 0) return;
  const std::uint64_t samples = corpus.manifest.samples();
  const std::string& format = corpus.manifest.facts().format;
  if (samples == setup.described_samples && format == setup.described_format) return;
  warn("the workload is about " + format_count(setup.described_samples) + " samples in " +
       setup.described_format + ", '" + corpus.name + "' has " + format_count(samples) +
       (format.empty() ? "" : " in " + format));
}

struct Subject {
  Corpus corpus;
  std::vector<Tier> others;
  std::optional<Corpus> validation;
};

Result<void> open_files(const Options& options, TrainSetup& setup, Subject& subject) {
  if (options.given("validation")) {
    PENSTOCK_ASSIGN(subject.validation,
                    open_corpus(options.text("validation"), {.scan = options.flag("scan"),
                                                             .threads = setup.threads,
                                                             .types = options.text("types")}));
    PENSTOCK_TRY(check_kind(*setup.app, *subject.validation));
  }
  PENSTOCK_ASSIGN(setup.files, take_files(*setup.app, setup.own, setup.seed, setup.shuffle, subject.corpus,
                                          subject.validation ? &*subject.validation : nullptr));
  return success();
}

Result<Subject> open_subject(const Options& options, TrainSetup& setup) {
  PENSTOCK_ASSIGN(Corpus corpus, open_data(options, setup));
  PENSTOCK_TRY(check_kind(*setup.app, corpus));
  PENSTOCK_TRY(check_decode(*setup.app, options.text("decode"), corpus));
  if (options.given("overlay")) PENSTOCK_TRY(lay_over(corpus, options.text("overlay")));
  PENSTOCK_ASSIGN(std::vector<Tier> others, open_tiers(options.texts("tier"), corpus.tier.name));
  PENSTOCK_TRY(check_cache_request(corpus.tier, setup.cache));
  bool in_place = corpus.tier.backend->caps().zero_copy;
  for (const Tier& tier : others) {
    PENSTOCK_TRY(check_cache_request(tier, setup.cache));
    in_place |= tier.backend->caps().zero_copy;
  }
  if (in_place) use_all_descriptors();  // samples that are used where they lie are open meanwhile
  Subject subject{std::move(corpus), std::move(others), std::nullopt};
  if (setup.checkpoints && setup.ranks->root()) {
    PENSTOCK_ASSIGN(const std::unique_ptr<EpochCheckpoints> checkpoints,
                    EpochCheckpoints::make(*setup.checkpoints, setup.checkpoint_name(),
                                           setup.own.size(kModelOption.name), setup.seed));
    PENSTOCK_TRY(checkpoints->try_place());
  }
  if (setup.app->plan_files != nullptr) {
    PENSTOCK_TRY(open_files(options, setup, subject));
    PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> accelerator,
                    make_accelerator(setup.accelerator, {.count = setup.accelerators}));
    PENSTOCK_TRY(accelerator->takes(setup.treats().layout()));
  }
  return subject;
}

// What went wrong with a run's checkpoints before the training, which ends it as it ends `penstock
// checkpoint`.
Result<int> refuse(const CommandContext& context, const Error& error) {
  const bool usage = error.code == Errc::invalid_argument || error.code == Errc::interrupted;
  const bool locked = error.code == Errc::busy;
  if (usage || (!locked && !context.options.flag("resume"))) return error;
  report_failed(context, error);
  return locked ? kLocked : kNothingRestorable;
}

// Where a run with checkpoints goes on, or that there is none yet.
Result<void> look_for_run(TrainSetup& setup, const Corpus& corpus) {
  if (!setup.saving->resume) return check_unused(*setup.saving, *setup.ranks);
  PENSTOCK_ASSIGN(setup.resumed, resume_run(*setup.saving, *setup.ranks));
  setup.limits.start = setup.resumed->start();
  PENSTOCK_TRY(check_resumable(setup, corpus));
  note("run '" + setup.saving->policy.run + "' goes on behind step " +
       std::to_string(setup.resumed->manifest.id.step) + ", from '" + setup.resumed->tier + "'");
  return success();
}

Result<std::unique_ptr<StepCheckpoints>> begin_saving(const TrainSetup& setup, const Corpus& corpus) {
  TrainerState at{.seed = setup.seed};
  if (setup.resumed) at = setup.resumed->manifest.trainer;
  at.work = trained_work(setup, corpus);
  return StepCheckpoints::open(*setup.saving, setup.limits.start.batches, at, *setup.ranks);
}

// What was saved of a run that has made all its steps, and is not durable yet. It ends as a training does:
// after a signal within --grace.
Result<int> nothing_left(const TrainSetup& setup, StepCheckpoints& saves) {
  note("run '" + setup.saving->policy.run +
       "' has made all its steps: --steps and --epochs are the whole "
       "run's");
  PENSTOCK_TRY(saves.drain_or_leave());
  return 0;
}

Result<int> train(const CommandContext& context, const MiniAppInfo& app) {
  const Options& options = context.options;
  Result<TrainSetup> resolved = resolve_train_setup(context, app);
  PENSTOCK_TRY(agree(context.communicator, outcome_of(resolved)));
  TrainSetup& setup = *resolved;
  const Result<Subject> subject = open_subject(options, setup);
  PENSTOCK_TRY(agree(context.communicator, outcome_of(subject)));
  const Corpus& corpus = subject->corpus;
  PENSTOCK_TRY(check_same_work(options, setup, subject->others.size()));
  PENSTOCK_TRY(check_shares(context.communicator, corpus, setup.files ? "files" : "samples"));
  compare_with_workload(setup, corpus);
  PENSTOCK_TRY(make_sampler(setup, corpus));
  if (setup.files && setup.files->plan.validation && !setup.files->plan.validation->at_the_end &&
      setup.limits.epochs == 1)
    note("'" + std::string(app.name) +
         "' validates between epochs, of which there is one: nothing is validated");
  if (app.checkpoints && !setup.checkpoints && !setup.saving)
    note("without --checkpoint-to DIR '" + std::string(app.name) + "' writes no checkpoints");
  if (!setup.files && corpus.manifest.facts().label_names.empty())
    note("'" + corpus.name + "' has no labels: its batches carry none");

  const SignalsForAll signals(context.communicator);
  std::unique_ptr<StepCheckpoints> saves;
  if (setup.saving) {
    if (const Result<void> found = look_for_run(setup, corpus); !found.ok())
      return refuse(context, found.error());
    Result<std::unique_ptr<StepCheckpoints>> started = begin_saving(setup, corpus);
    if (!started.ok() && started.error().code == Errc::busy) return refuse(context, started.error());
    PENSTOCK_ASSIGN(saves, std::move(started));
    setup.saves = saves.get();
    if (planned_steps(setup, corpus) == 0) return nothing_left(setup, *saves);
  }
  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  TrainRuns runs(setup, corpus, run);
  const Result<CellEnd> measured = measure_all(setup, corpus, subject->others, runs);
  const Result<std::string> written = run.finish();
  if (!context.output.json && context.communicator.root())
    print_text(training_report(run.records(), context.output));
  if (measured.ok() && *measured == CellEnd::stuck) {
    if (!written.ok()) warn(written.error().message());
    leave(context.communicator, interrupted() ? 128 + interrupt_signal() : run.exit_code());
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
    return make_error(Errc::invalid_argument, "train needs the name of a mini-app: train --list shows them");
  PENSTOCK_ASSIGN(const MiniAppInfo* app, miniapp_registry().find(context.positionals[0]));
  if (!options.flag("resume") || options.given("seed")) return train(context, *app);
  Result<std::optional<StepSaving>> saving = step_saving(options);
  PENSTOCK_TRY(agree(context.communicator, outcome_of(saving)));
  const Result<std::uint64_t> seed = seed_of_run(**saving, context.communicator);
  if (!seed.ok()) return refuse(context, seed.error());
  CommandContext of_run = context;
  of_run.seed = *seed;
  return train(of_run, *app);
}

constexpr std::string_view kFindings[] = {"restart",     "resumed_step",       "resumed_from",
                                          "fed_so_far",  "one_more_missed_by", "accelerators_at_most",
                                          "rank_scaling"};

}  // namespace

extern const CommandInfo command_train;
const CommandInfo command_train{
    .name = "train",
    .summary =
        "runs a mini-app's input pipeline in front of an accelerator: samples/s, utilization, what was "
        "hidden",
    .options = kTrainOptions,
    .run = &run,
    .synopsis =
        "penstock train APP --data CORPUS [options] | penstock train dlio --workload FILE [++KEY=VALUE...] | "
        "train --list",
    .examples =
        {"penstock train alexnet --data corpora/imagenet --prefetch 4   # as fast as the pipeline delivers",
         "penstock train alexnet --data photos --scan --steps 50 --accelerator emulated:step=100ms   # what "
         "waits"},
    .arguments = "[APP]...",
    .measures = true,
    .ranks = true,
    .findings = kFindings,
    .metrics = train_metrics::kAll};

}  // namespace penstock
