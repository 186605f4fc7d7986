#include "miniapps/train/train_setup.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <utility>
#include <vector>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/placement.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "profiling/spans/timeline_file.hpp"

namespace penstock {
namespace {

constexpr std::int64_t kUnbounded = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kMostThreads = 4096;
constexpr std::int64_t kMostDepth = 1024;
constexpr std::int64_t kMostAccelerators = 65536;
constexpr std::uint64_t kSearchedSteps = 20;  // of a run of the search, at least
constexpr std::chrono::duration<double> kSearchedSeconds{2};
constexpr std::int64_t kLargestBatch = std::int64_t{1} << 24;

Result<Options> app_options(const MiniAppInfo& app, const std::vector<std::string>& words) {
  std::vector<OptionWord> pairs;
  for (const std::string& word : words) {
    const std::size_t equals = word.find('=');
    if (equals == 0 || equals == std::string::npos)
      return make_error(Errc::invalid_argument, "--set takes KEY=VALUE, not '" + word + "'");
    pairs.push_back({word.substr(0, equals), word.substr(equals + 1)});
  }
  return Options::parse(app.options, pairs, std::string(app.name) + " option");
}

Result<std::uint64_t> bounded(const Options& options, std::string_view name, std::int64_t most,
                              std::uint64_t fallback) {
  const bool given = options.given(name);
  const std::uint64_t value = given ? static_cast<std::uint64_t>(options.integer(name)) : fallback;
  if (value > static_cast<std::uint64_t>(most))
    return make_error(Errc::invalid_argument, "--" + std::string(name) + " " + std::to_string(value) +
                                                  (given ? "" : " (of the workload)") +
                                                  " is too large: at most " + std::to_string(most));
  return value;
}

// What the run takes where no flag says otherwise.
Result<RunDefaults> run_defaults(const CommandContext& context, const MiniAppInfo& app,
                                 std::uint64_t accelerators) {
  const Options& options = context.options;
  const std::vector<std::string> overrides(context.positionals.begin() + 1, context.positionals.end());
  if (app.workload != nullptr) {
    if (!options.given("workload"))
      return make_error(Errc::invalid_argument, "'" + std::string(app.name) +
                                                    "' needs --workload FILE.yaml, which describes the run");
    return app.workload({options.text("workload"), overrides,
                         accelerators * static_cast<std::uint64_t>(context.communicator.size())});
  }
  if (options.given("workload"))
    return make_error(Errc::invalid_argument, "--workload is nothing for '" + std::string(app.name) +
                                                  "', which is described by flags");
  if (!overrides.empty())
    return make_error(Errc::invalid_argument, "'" + overrides.front() + "' is one word too many");
  RunDefaults defaults;
  defaults.batch = app.defaults.batch;
  defaults.prefetch = app.defaults.prefetch;
  defaults.accelerator = app.defaults.accelerator;
  defaults.shuffle = app.defaults.shuffle;
  defaults.threads = app.defaults.threads;
  defaults.epochs = app.defaults.epochs;
  defaults.steps = app.defaults.steps;
  return defaults;
}

// By flags alone, where one of both is given; else by the description; else one epoch.
Result<PlanLimits> limits_of(const Options& options, const RunDefaults& defaults) {
  PlanLimits limits{.batches = defaults.steps, .epochs = defaults.epochs};
  if (options.given("steps") || options.given("epochs")) {
    PENSTOCK_ASSIGN(limits.batches, bounded(options, "steps", kUnbounded, 0));
    PENSTOCK_ASSIGN(limits.epochs, bounded(options, "epochs", kUnbounded, 0));
  }
  if (limits.batches == 0 && limits.epochs == 0) limits.epochs = 1;
  return limits;
}

// Runs that are long enough to tell how busy the accelerators were, where the user does not say how long.
Result<void> search_accelerators(const Options& options, const Accelerator& accelerator, TrainSetup& setup) {
  const double step_s = std::chrono::duration<double>(accelerator.nominal_step()).count();
  if (step_s <= 0)
    return make_error(Errc::invalid_argument,
                      "--find-accelerators needs accelerators with a step: --accelerator emulated:step=10ms");
  if (options.given("accelerators"))
    return make_error(Errc::invalid_argument,
                      "--find-accelerators finds how many there can be: leave out --accelerators");
  for (const char* name : {"checkpoint-to", "checkpoint-every", "validation"})
    if (options.given(name))
      return make_error(Errc::invalid_argument,
                        "--find-accelerators is about input alone: leave out --" + std::string(name));
  if (setup.accelerator.find("jitter=") != std::string::npos)
    return make_error(
        Errc::invalid_argument,
        "--find-accelerators takes no jitter: what accelerators wait for each other is not the tier's");
  if (options.given("steps") && options.integer("steps") < 2)
    return make_error(Errc::invalid_argument, "--find-accelerators needs runs of 2 --steps at least");
  if (!options.given("steps") && !options.given("epochs")) {
    setup.limits = {.batches = std::max(kSearchedSteps, static_cast<std::uint64_t>(
                                                            std::ceil(kSearchedSeconds.count() / step_s)))};
    setup.enough = std::chrono::duration_cast<std::chrono::nanoseconds>(kSearchedSeconds);
    setup.enough_steps = kSearchedSteps;
  }
  // Behind its first epoch a cold cache is none.
  if (parse_cache_request(options.text("cache")) == CacheRequest::cold) setup.limits.epochs = 1;
  setup.find_accelerators = true;
  if (setup.busy_at_least <= 0 || setup.busy_at_least > 1)
    return make_error(Errc::invalid_argument, "--au is a part of 1, such as 0.9");
  return success();
}

Result<void> take_timeline(const Options& options, TrainSetup& setup) {
  setup.timeline = options.text("timeline");
  setup.timeline_memory = options.size("timeline-memory");
  if (setup.timeline.empty()) return success();
  PENSTOCK_TRY(timeline_format(setup.timeline));
  if (setup.find_accelerators)
    return make_error(Errc::invalid_argument,
                      "a search is many runs and --timeline shows one: leave out --find-accelerators");
  return success();
}

// Behind steps, or of an app that has checkpoints of its own, behind epochs.
Result<void> take_checkpoints(const Options& options, TrainSetup& setup) {
  PENSTOCK_ASSIGN(setup.saving, step_saving(options));
  if (!options.given("checkpoint-to")) return success();
  if (!setup.saving) {
    if (!setup.app->checkpoints)
      return make_error(Errc::invalid_argument, "--checkpoint-to alone is nothing for '" +
                                                    std::string(setup.app->name) +
                                                    "', which writes none behind epochs: add "
                                                    "--checkpoint-every N");
    PENSTOCK_ASSIGN(setup.checkpoints, open_tier(options.text("checkpoint-to")));
    return success();
  }
  if (options.given("tier"))
    return make_error(Errc::invalid_argument,
                      "checkpoints are of one training, and each --tier is one more: leave it out");
  if (options.text("on-error") == "skip")
    return make_error(Errc::invalid_argument,
                      "a checkpoint counts the samples that were used, which does not tell where the order "
                      "stands once some were replaced: leave out --on-error skip");
  return success();
}

}  // namespace

TrainedWork trained_work(const TrainSetup& setup, const Corpus& corpus) {
  return {.app = std::string(setup.app->name),
          .corpus = corpus.manifest.checksum(),
          .shuffle = shuffle_text(setup.shuffle),
          .step_samples = setup.step_samples()};
}

Result<void> check_resumable(const TrainSetup& setup, const Corpus& corpus) {
  if (!setup.resumed) return success();
  const CheckpointManifest& from = setup.resumed->manifest;
  const auto refuse = [&](const std::string& why) {
    return make_error(Errc::invalid_argument, "run '" + from.run + "' cannot go on here: " + why);
  };
  const TrainedWork& was = from.trainer.work;
  const TrainedWork now = trained_work(setup, corpus);
  if (!was.app.empty()) {  // else no training made it
    if (was.app != now.app) return refuse("it is one of 'train " + was.app + "'");
    if (was.corpus != now.corpus)
      return refuse("the manifest of its corpus has the checksum " + was.corpus + ", that of '" +
                    corpus.name + "' has " + now.corpus + ": --data names another corpus");
    if (was.shuffle != now.shuffle)
      return refuse("its order is that of --shuffle " + was.shuffle + ", not of " + now.shuffle);
    if (was.step_samples != now.step_samples)
      return refuse("its steps take " + std::to_string(was.step_samples) + " samples of each rank, not " +
                    std::to_string(now.step_samples) + " (--batch times --accelerators)");
  }
  if (from.trainer.seed != setup.seed)
    return refuse("its order is that of --seed " + std::to_string(from.trainer.seed));
  if (setup.accelerator.starts_with("cpu"))
    return refuse("what --accelerator cpu learns is not in a checkpoint, whose bytes stand for a network");
  const std::uint64_t samples = setup.files ? setup.files->samples->samples() : corpus.manifest.samples();
  if (from.trainer.consumed > samples)
    return refuse("it had used " + std::to_string(from.trainer.consumed) +
                  " samples of an epoch, and here are " + std::to_string(samples));
  const auto ranks = static_cast<std::uint64_t>(setup.ranks->size());
  const bool shared = setup.shuffle == Shuffle::none || setup.shuffle == Shuffle::global;
  if (from.ranks == ranks || (shared && !setup.files)) return success();
  return refuse("it ran over " + std::to_string(from.ranks) + " ranks, each of which had " +
                (setup.files ? "files" : "an order") + " of its own: start as many");
}

Result<TrainSetup> resolve_train_setup(const CommandContext& context, const MiniAppInfo& app) {
  const Options& options = context.options;
  TrainSetup setup;
  setup.app = &app;
  PENSTOCK_ASSIGN(setup.own, app_options(app, options.texts("set")));
  for (const char* name : {"decode", "resize"})
    if (!app.pictures && options.given(name))
      return make_error(Errc::invalid_argument, "--" + std::string(name) + " is nothing for '" +
                                                    std::string(app.name) + "', which decodes no pictures");
  AppRequest request;
  request.seed = context.seed;
  PENSTOCK_ASSIGN(request.decode, parse_decode(options.text("decode")));
  PENSTOCK_ASSIGN(request.resize, parse_resize(options.text("resize")));
  if (app.plan_files == nullptr) {
    PENSTOCK_ASSIGN(setup.app_transform, app.make(setup.own, request));
    if (options.given("validation"))
      return make_error(Errc::invalid_argument,
                        "--validation is nothing for '" + std::string(app.name) + "', which only trains");
  }
  PENSTOCK_TRY(take_checkpoints(options, setup));
  PENSTOCK_ASSIGN(setup.accelerators, bounded(options, "accelerators", kMostAccelerators, 1));
  PENSTOCK_ASSIGN(const RunDefaults defaults, run_defaults(context, app, setup.accelerators));
  for (const std::string& sentence : defaults.notes) note(sentence);
  setup.workload = options.text("workload");
  setup.described_samples = defaults.samples;
  setup.described_format = defaults.format;
  setup.data = options.given("data") ? options.text("data") : defaults.data;
  setup.accelerator = options.given("accelerator") ? options.text("accelerator") : defaults.accelerator;
  PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> accelerator,
                  make_accelerator(setup.accelerator, {.count = setup.accelerators}));
  if (setup.app_transform) PENSTOCK_TRY(accelerator->takes(setup.app_transform->layout()));
  PENSTOCK_ASSIGN(setup.batch, bounded(options, "batch", kLargestBatch, defaults.batch));
  PENSTOCK_ASSIGN(setup.prefetch, bounded(options, "prefetch", kUnbounded, defaults.prefetch));
  if (app.in_memory && setup.prefetch != 0)
    return make_error(Errc::invalid_argument, "--prefetch is nothing for '" + std::string(app.name) +
                                                  "', whose samples are all in memory");
  const std::uint64_t usual =
      std::clamp<std::uint64_t>(allowed_cpus().size(), 1, static_cast<std::uint64_t>(kMostThreads));
  PENSTOCK_ASSIGN(const std::uint64_t threads, bounded(options, "threads", kMostThreads,
                                                       defaults.threads != 0 ? defaults.threads : usual));
  setup.threads = static_cast<unsigned>(threads);
  PENSTOCK_ASSIGN(setup.depth, bounded(options, "depth", kMostDepth, 0));
  setup.patience = options.duration("stall-timeout");
  setup.busy_at_least = options.given("au") ? options.real("au") : defaults.au;
  PENSTOCK_ASSIGN(setup.limits, limits_of(options, defaults));
  if (options.flag("find-accelerators")) PENSTOCK_TRY(search_accelerators(options, *accelerator, setup));
  PENSTOCK_ASSIGN(setup.shuffle,
                  parse_shuffle(options.given("shuffle") ? options.text("shuffle") : defaults.shuffle));
  setup.bad_sample = options.text("on-error") == "skip" ? BadSample::skip : BadSample::fail;
  setup.cache = parse_cache_request(options.text("cache"));
  setup.seed = context.seed;
  setup.ranks = &context.communicator;
  setup.sample_log = options.text("sample-log");
  PENSTOCK_TRY(take_timeline(options, setup));
  setup.progress = context.output.progress;
  return setup;
}

}  // namespace penstock
