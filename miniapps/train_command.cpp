// `penstock train`: the input pipeline of a mini-app in front of an accelerator, measured on each tier.
#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "datagen/command_output.hpp"
#include "datagen/corpus.hpp"
#include "datagen/format/sample_opener.hpp"
#include "io_backends/base/command.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/progress.hpp"
#include "miniapps/miniapp.hpp"
#include "miniapps/train_cell.hpp"
#include "miniapps/train_report.hpp"
#include "miniapps/train_setup.hpp"
#include "results/trial.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kOptions[] = {
    {.name = "data",
     .value = "CORPUS",
     .help = "what to train on: a folder or TIER with a manifest, or with --scan any folder of pictures",
     .group = "Corpus"},
    kScanOption,
    kManifestOption,
    {.name = "tier",
     .value = "TIER",
     .help = "one more place that holds the same objects, measured beside the corpus's own",
     .group = "Corpus",
     .repeated = true},
    {.name = "cache",
     .type = OptionType::choice,
     .value = "cold|warm|asis",
     .fallback = "asis",
     .help = "bring this machine's page cache into that state first, and prove it",
     .group = "Corpus"},
    {.name = "epochs",
     .type = OptionType::integer,
     .value = "E",
     .help = "go through the corpus this often; 1 where --steps is not given either",
     .group = "Training",
     .at_least = 1},
    {.name = "steps",
     .type = OptionType::integer,
     .value = "N",
     .help = "end after this many batches, going on into further epochs as needed",
     .group = "Training",
     .at_least = 1},
    {.name = "batch",
     .type = OptionType::integer,
     .value = "B",
     .help = "samples a step (the app's own default: train --list)",
     .group = "Training",
     .at_least = 1},
    {.name = "shuffle",
     .type = OptionType::choice,
     .value = "none|local|global",
     .help =
         "order of an epoch: the manifest's, each rank's part permuted, or all permuted (default: global)",
     .group = "Training"},
    {.name = "accelerator",
     .value = "none|emulated:step=TIME[,jitter=TIME][,burn=cpu:CORES]",
     .help = "what consumes the batches: nothing at all, or something that is busy that long with each; "
             "jitter: more or "
             "less by up to that; burn: with so many processors busy beside it",
     .group = "Training"},
    {.name = "sample-log",
     .value = "FILE",
     .help = "write a line 'epoch step rank index' for each sample consumed (FILE.NAME for further tiers)",
     .group = "Training"},
    {.name = "threads",
     .type = OptionType::integer,
     .value = "N",
     .help = "workers that read and decode (default: as many as there are cpus)",
     .group = "Input pipeline",
     .at_least = 1},
    {.name = "prefetch",
     .type = OptionType::integer,
     .value = "K",
     .help = "batches that may be ahead of the accelerator; 0: input and steps alternate (default: the app's "
             "own)",
     .group = "Input pipeline",
     .at_least = 0},
    {.name = "depth",
     .type = OptionType::integer,
     .value = "N",
     .help =
         "reads on their way at a time, a thread (default: 16 on back ends with queues of their own, else 1)",
     .group = "Input pipeline",
     .alias = "iodepth",
     .at_least = 1},
    {.name = "decode",
     .type = OptionType::choice,
     .value = "full|scaled|crop",
     .fallback = "full",
     .help = "every pixel; at half, a quarter or an eighth where that is enough; or only what a random crop "
             "needs",
     .group = "Input pipeline"},
    {.name = "resize",
     .type = OptionType::choice,
     .value = "bilinear|antialias",
     .fallback = "bilinear",
     .help = "between the four nearest pixels; or over all that fall on a pixel, as Pillow does",
     .group = "Input pipeline"},
    {.name = "on-error",
     .type = OptionType::choice,
     .value = "fail|skip",
     .fallback = "fail",
     .help = "a sample that cannot be read or decoded ends the run, or is counted, named and replaced",
     .group = "Input pipeline"},
    {.name = "set",
     .value = "KEY=VALUE",
     .help = "an option of the mini-app itself (train --list shows them)",
     .group = "Input pipeline",
     .repeated = true},
    {.name = "list",
     .type = OptionType::flag,
     .help = "the mini-apps, what they reproduce, their defaults and options",
     .group = "Training"},
};

// A corpus of something else than the app takes is a mistake; a scanned folder may be a mixture, whose odd
// ones then fail one by one.
Result<void> check_codec(const MiniAppInfo& app, const Corpus& corpus) {
  if (app.codec.empty()) return {};
  PENSTOCK_TRY(SampleOpener::make(corpus.manifest.facts().codec));
  const std::string codec(payload_codec(corpus.manifest.facts().codec));
  if (codec.empty() || codec == "mixed" ||
      ("|" + std::string(app.codec) + "|").find("|" + codec + "|") != std::string::npos)
    return {};
  return make_error(Errc::invalid_argument, "'" + corpus.name + "' holds " + codec + " samples; " +
                                                std::string(app.name) + " takes " + std::string(app.codec));
}

// Keeps a record whatever happens; the error that comes back is not the tier's fault.
Result<void> measure_on(const TrainSetup& setup, const Corpus& corpus, const Tier& tier, BatchPool& pool,
                        Run& run) {
  run.measured_tier(tier);
  Trial trial = run.trial();
  Result<void> measured = measure_training(setup, corpus, tier, pool, trial);
  if (!measured.ok()) trial.fail(measured.error());
  if (measured.ok() && verdict_exit_code(trial.record().verdict) == 1 && !interrupted())
    warn(tier.name + ": " + trial.record().reason);
  run.keep(std::move(trial));
  return measured;
}

Result<void> measure_all(const TrainSetup& setup, const Corpus& corpus, const std::vector<Tier>& others,
                         Run& run) {
  const Manifest& manifest = corpus.manifest;
  const std::uint64_t mean_bytes = manifest.payload_bytes() / std::max<std::uint64_t>(1, manifest.samples());
  PENSTOCK_ASSIGN(BatchPool pool, BatchPool::make({.samples = static_cast<std::size_t>(setup.batch),
                                                   .slot_bytes = setup.treatment->slot_bytes(),
                                                   .stored_bytes = mean_bytes},
                                                  setup.prefetch));
  PENSTOCK_TRY(measure_on(setup, corpus, corpus.tier, pool, run));
  for (const Tier& tier : others) {
    PENSTOCK_TRY(check_interrupt());
    PENSTOCK_TRY(measure_on(setup, corpus, tier, pool, run));
  }
  return {};
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
  PENSTOCK_ASSIGN(const TrainSetup setup, resolve_train_setup(context, *app));
  if (!options.given("data")) return make_error(Errc::invalid_argument, "train needs --data CORPUS");
  PENSTOCK_ASSIGN(const Corpus corpus,
                  open_corpus(options.text("data"), {.scan = options.flag("scan"),
                                                     .manifest_file = options.text("manifest"),
                                                     .threads = setup.threads}));
  PENSTOCK_TRY(check_codec(*app, corpus));
  PENSTOCK_TRY(make_sampler(setup, corpus));
  if (corpus.manifest.facts().label_names.empty())
    note("'" + corpus.name + "' has no labels: its batches carry none");
  PENSTOCK_ASSIGN(const std::vector<Tier> others, open_tiers(options.texts("tier"), corpus.tier.name));

  PENSTOCK_ASSIGN(Run run, Run::begin(context));
  const Result<void> measured = measure_all(setup, corpus, others, run);
  PENSTOCK_TRY(run.finish());
  if (!context.output.json) print_text(training_report(run.records(), context.output));
  if (!measured.ok() && measured.error().code != Errc::interrupted) return measured.error();
  return run.exit_code();
}

}  // namespace

extern const CommandInfo command_train;
const CommandInfo command_train{
    .name = "train",
    .summary =
        "runs a mini-app's input pipeline in front of an accelerator: samples/s, utilization, what was "
        "hidden",
    .options = kOptions,
    .run = &run,
    .synopsis = "penstock train APP --data CORPUS [--tier TIER]... [options]  |  penstock train --list",
    .examples =
        {"penstock train alexnet --data corpora/imagenet --prefetch 4   # as fast as the pipeline delivers",
         "penstock train alexnet --data photos --scan --steps 50 --accelerator emulated:step=100ms   # what "
         "waits"},
    .nouns = "APP",
    .nouns_at_least = 0,
    .nouns_at_most = 1,
    .measures = true};

}  // namespace penstock
