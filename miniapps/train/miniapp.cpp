#include "miniapps/train/miniapp.hpp"

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <utility>

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

// What the run takes where no flag says otherwise, by its workload file or the app. Returns notes for the
// user.
Result<std::vector<std::string>> take_defaults(const CommandContext& context, TrainRequest& request) {
  const Options& options = context.options;
  const MiniAppInfo& app = *request.app;
  const std::vector<std::string> overrides(context.positionals.begin() + 1, context.positionals.end());
  request.workload = options.text("workload");
  if (app.workload != nullptr) {
    if (!options.given("workload"))
      return make_error(Errc::invalid_argument, "'" + std::string(app.name) +
                                                    "' needs --workload FILE.yaml, which describes the run");
    return app.workload(overrides, request);
  }
  if (options.given("workload"))
    return make_error(Errc::invalid_argument, "--workload is nothing for '" + std::string(app.name) +
                                                  "', which is described by flags");
  if (!overrides.empty())
    return make_error(Errc::invalid_argument, "'" + overrides.front() + "' is one word too many");
  request.batch = app.defaults.batch;
  request.prefetch = app.defaults.prefetch;
  request.accelerator = app.defaults.accelerator;
  request.threads = app.defaults.threads;
  request.limits = {.batches = app.defaults.steps, .epochs = app.defaults.epochs};
  PENSTOCK_ASSIGN(request.shuffle, parse_shuffle(app.defaults.shuffle));
  return std::vector<std::string>();
}

// By flags alone, where one of both is given; else by the description; else one epoch.
Result<void> take_limits(const Options& options, PlanLimits& limits) {
  if (options.given("steps") || options.given("epochs")) {
    PENSTOCK_ASSIGN(limits.batches, bounded(options, "steps", kUnbounded, 0));
    PENSTOCK_ASSIGN(limits.epochs, bounded(options, "epochs", kUnbounded, 0));
  }
  if (limits.batches == 0 && limits.epochs == 0) limits.epochs = 1;
  return success();
}

// Runs that are long enough to tell how busy the accelerators were, where the user does not say how long.
Result<void> search_accelerators(const Options& options, const Accelerator& accelerator,
                                 TrainRequest& request) {
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
  if (request.accelerator.find("jitter=") != std::string::npos)
    return make_error(
        Errc::invalid_argument,
        "--find-accelerators takes no jitter: what accelerators wait for each other is not the tier's");
  if (options.given("steps") && options.integer("steps") < 2)
    return make_error(Errc::invalid_argument, "--find-accelerators needs runs of 2 --steps at least");
  if (!options.given("steps") && !options.given("epochs")) {
    request.limits = {.batches = std::max(kSearchedSteps, static_cast<std::uint64_t>(
                                                              std::ceil(kSearchedSeconds.count() / step_s)))};
    request.enough = std::chrono::duration_cast<std::chrono::nanoseconds>(kSearchedSeconds);
    request.enough_steps = kSearchedSteps;
  }
  // Behind its first epoch a cold cache is none.
  if (parse_cache_request(options.text("cache")) == CacheRequest::cold) request.limits.epochs = 1;
  request.find_accelerators = true;
  if (request.busy_at_least <= 0 || request.busy_at_least > 1)
    return make_error(Errc::invalid_argument, "--au is a part of 1, such as 0.9");
  return success();
}

Result<void> take_timeline(const Options& options, TrainRequest& request) {
  request.timeline = options.text("timeline");
  request.timeline_memory = options.size("timeline-memory");
  if (request.timeline.empty()) return success();
  PENSTOCK_TRY(timeline_format(request.timeline));
  if (request.find_accelerators)
    return make_error(Errc::invalid_argument,
                      "a search is many runs and --timeline shows one: leave out --find-accelerators");
  return success();
}

// Behind steps, or of an app that has checkpoints of its own, behind epochs.
Result<void> take_checkpoints(const Options& options, TrainRequest& request) {
  PENSTOCK_ASSIGN(request.saving, step_saving(options, request.named_tiers));
  if (!options.given("checkpoint-to")) return success();
  if (!request.saving) {
    if (!request.app->checkpoints)
      return make_error(Errc::invalid_argument, "--checkpoint-to alone is nothing for '" +
                                                    std::string(request.app->name) +
                                                    "', which writes none behind epochs: add "
                                                    "--checkpoint-every N");
    PENSTOCK_ASSIGN(request.checkpoints, open_tier(options.text("checkpoint-to"), request.named_tiers));
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

std::string TrainRequest::checkpoint_name() const {
  return "penstock-" + std::string(app->name) + ".ckpt";
}

Result<TrainRequest> parse_request(const CommandContext& context, const MiniAppInfo& app) {
  const Options& options = context.options;
  TrainRequest request;
  request.app = &app;
  request.seed = context.seed;
  request.ranks = &context.communicator;
  request.named_tiers = context.named_tiers;
  PENSTOCK_ASSIGN(request.own, app_options(app, options.texts("set")));
  for (const char* name : {"decode", "resize"})
    if (!app.pictures && options.given(name))
      return make_error(Errc::invalid_argument, "--" + std::string(name) + " is nothing for '" +
                                                    std::string(app.name) + "', which decodes no pictures");
  PENSTOCK_ASSIGN(request.decode, parse_decode(options.text("decode")));
  PENSTOCK_ASSIGN(request.resize, parse_resize(options.text("resize")));
  if (app.plan_files == nullptr) {
    PENSTOCK_TRY(app.make(request));  // its options are refused first
    if (options.given("validation"))
      return make_error(Errc::invalid_argument,
                        "--validation is nothing for '" + std::string(app.name) + "', which only trains");
  }
  PENSTOCK_TRY(take_checkpoints(options, request));
  PENSTOCK_ASSIGN(request.accelerators, bounded(options, "accelerators", kMostAccelerators, 1));
  PENSTOCK_ASSIGN(const std::vector<std::string> notes, take_defaults(context, request));
  for (const std::string& sentence : notes) note(sentence);
  if (options.given("data")) request.data = options.text("data");
  if (options.given("accelerator")) request.accelerator = options.text("accelerator");
  PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> accelerator,
                  make_accelerator(request.accelerator, {.count = request.accelerators}));
  if (app.plan_files == nullptr) {
    PENSTOCK_ASSIGN(const Transform made, app.make(request));
    PENSTOCK_TRY(accelerator->takes(made.layout));
  }
  PENSTOCK_ASSIGN(request.batch, bounded(options, "batch", kLargestBatch, request.batch));
  PENSTOCK_ASSIGN(request.prefetch, bounded(options, "prefetch", kUnbounded, request.prefetch));
  if (app.in_memory && request.prefetch != 0)
    return make_error(Errc::invalid_argument, "--prefetch is nothing for '" + std::string(app.name) +
                                                  "', whose samples are all in memory");
  const std::uint64_t usual =
      std::clamp<std::uint64_t>(allowed_cpus().size(), 1, static_cast<std::uint64_t>(kMostThreads));
  PENSTOCK_ASSIGN(request.threads,
                  bounded(options, "threads", kMostThreads, request.threads != 0 ? request.threads : usual));
  PENSTOCK_ASSIGN(request.depth, bounded(options, "depth", kMostDepth, 0));
  request.patience = options.duration("stall-timeout");
  if (options.given("au")) request.busy_at_least = options.real("au");
  PENSTOCK_TRY(take_limits(options, request.limits));
  if (options.flag("find-accelerators")) PENSTOCK_TRY(search_accelerators(options, *accelerator, request));
  if (options.given("shuffle")) {
    PENSTOCK_ASSIGN(request.shuffle, parse_shuffle(options.text("shuffle")));
  }
  request.bad_sample = options.text("on-error") == "skip" ? BadSample::skip : BadSample::fail;
  request.cache = parse_cache_request(options.text("cache"));
  request.sample_log = options.text("sample-log");
  PENSTOCK_TRY(take_timeline(options, request));
  request.progress = context.output.progress;
  return request;
}

}  // namespace penstock
