#include "miniapps/train/train_plan.hpp"

#include <algorithm>
#include <limits>
#include <string>
#include <utility>

#include "datagen/corpus/tier_copy.hpp"
#include "io_backends/core/system/cgroup.hpp"
#include "io_backends/core/system/descriptor_limit.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/in_place.hpp"
#include "miniapps/pipeline/memory_batches.hpp"
#include "miniapps/train/epoch_checkpoints.hpp"
#include "miniapps/train/find_accelerators.hpp"
#include "miniapps/train/timeline.hpp"
#include "miniapps/train/train_corpus.hpp"
#include "miniapps/train/train_time.hpp"

namespace penstock {
namespace {

constexpr int64_t kUnbounded = std::numeric_limits<int64_t>::max();
constexpr int64_t kMostThreads = 4096;
constexpr int64_t kMostQueueDepth = 1024;
constexpr int64_t kMostAccelerators = 65536;
constexpr int64_t kLargestBatch = int64_t{1} << 24;
constexpr size_t kUsualQueueDepth = 16;
// For an app that loads all samples first: the prefetch depth of that loading.
constexpr uint64_t kLoadPrefetch = 255;

Result<Options> app_options(const MiniAppInfo& app, const std::vector<std::string>& assignments) {
  std::vector<OptionWord> pairs;
  for (const std::string& assignment : assignments) {
    const size_t equals = assignment.find('=');
    if (equals == 0 || equals == std::string::npos)
      return make_error(Errc::invalid_argument, "--set needs KEY=VALUE, not '" + assignment + "'");
    // field=NAME is a setting of the scan (corpus_request()); no app has an option of this name.
    std::string key = assignment.substr(0, equals);
    if (key != "field") pairs.push_back({std::move(key), assignment.substr(equals + 1)});
  }
  return Options::parse(app.options, pairs, std::string(app.name) + " option");
}

Result<uint64_t> bounded_option(const Options& options, std::string_view name, int64_t most,
                                uint64_t fallback) {
  const bool given = options.given(name);
  const uint64_t value = given ? uint64_t(options.integer(name)) : fallback;
  if (value > uint64_t(most))
    return make_error(Errc::invalid_argument, "--" + std::string(name) + " " + std::to_string(value) +
                                                  (given ? "" : " (of the workload)") +
                                                  " is too large: at most " + std::to_string(most));
  return value;
}

// Sets the values of flags that the user has not given: from the workload file or, without one, from the
// app's defaults. Returns notes for the user.
Result<std::vector<std::string>> take_defaults(const CommandContext& context, TrainRequest& request) {
  const Options& options = context.options;
  const MiniAppInfo& app = *request.app;
  const std::vector<std::string> overrides(context.positionals.begin() + 1, context.positionals.end());
  request.workload = options.text("workload");
  if (app.workload != nullptr) {
    if (!options.given("workload"))
      return make_error(Errc::invalid_argument, "'" + std::string(app.name) +
                                                    "' needs --workload FILE.yaml, which describes the run");
    return app.workload(options, overrides, request);
  }
  if (options.given("workload"))
    return make_error(Errc::invalid_argument, "--workload has no effect on '" + std::string(app.name) +
                                                  "', which uses flags: leave it out");
  if (!overrides.empty())
    return make_error(
        Errc::invalid_argument,
        "'" + overrides.front() + "' is an unexpected argument: pass options of the app as --set KEY=VALUE");
  request.batch = app.defaults.batch;
  request.prefetch = app.defaults.prefetch;
  request.accelerator = app.defaults.accelerator;
  request.threads = app.defaults.threads;
  request.limits = {.batches = app.defaults.steps, .epochs = app.defaults.epochs};
  PENSTOCK_ASSIGN(request.shuffle, parse_shuffle(app.defaults.shuffle));
  return std::vector<std::string>();
}

// Sets the limits of the run. If --steps or --epochs is given, only these two flags count. Otherwise the
// limits of the workload file or of the app count. Without any limit, the run is one epoch.
Result<void> take_limits(const Options& options, PlanLimits& limits) {
  if (options.given("steps") || options.given("epochs")) {
    PENSTOCK_ASSIGN(limits.batches, bounded_option(options, "steps", kUnbounded, 0));
    PENSTOCK_ASSIGN(limits.epochs, bounded_option(options, "epochs", kUnbounded, 0));
  }
  if (limits.batches == 0 && limits.epochs == 0) limits.epochs = 1;
  return success();
}

// Plans the input of an app that loads whole files: opens the corpus of --validation, lets the app plan its
// files, and checks that the accelerator can use them.
Result<void> open_files(const Options& options, TrainPlan& plan) {
  if (options.given("validation")) {
    PENSTOCK_ASSIGN(plan.validation_corpus, open_validation_corpus(options, plan));
  }
  PENSTOCK_ASSIGN(plan.input,
                  take_files(plan, plan.corpus, plan.validation_corpus ? &*plan.validation_corpus : nullptr));
  PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> accelerator,
                  make_accelerator(plan.accelerator, {.count = plan.accelerators}));
  return accelerator->check_layout(plan.transform().layout);
}

}  // namespace

Result<TrainRequest> parse_request(const CommandContext& context, const MiniAppInfo& app) {
  const Options& options = context.options;
  TrainRequest request;
  request.app = &app;
  request.seed = context.seed;
  request.ranks = &context.communicator;
  request.named_tiers = context.named_tiers;
  request.log = context.log;
  request.warn = context.warn;
  PENSTOCK_TRY(check_field_option(options, true));
  PENSTOCK_ASSIGN(request.app_options, app_options(app, options.texts("set")));
  for (const char* name : {"decode", "resize"})
    if (!app.takes_pictures && options.given(name))
      return make_error(Errc::invalid_argument, "--" + std::string(name) + " has no effect on '" +
                                                    std::string(app.name) +
                                                    "', which does not decode images: leave it out");
  PENSTOCK_ASSIGN(request.decode, parse_decode(options.text("decode")));
  PENSTOCK_ASSIGN(request.resize, parse_resize(options.text("resize")));
  if (app.plan_files == nullptr) {
    PENSTOCK_TRY(app.make(request));  // only to report wrong options of the app early
    if (options.given("validation"))
      return make_error(Errc::invalid_argument, "--validation has no effect on '" + std::string(app.name) +
                                                    "', which has no validation: leave it out");
  }
  PENSTOCK_TRY(take_checkpoints(options, request));
  PENSTOCK_ASSIGN(request.accelerators, bounded_option(options, "accelerators", kMostAccelerators, 1));
  PENSTOCK_ASSIGN(request.notes, take_defaults(context, request));
  if (options.given("data")) request.data = options.text("data");
  if (options.given("accelerator")) request.accelerator = options.text("accelerator");
  PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> accelerator,
                  make_accelerator(request.accelerator, {.count = request.accelerators}));
  if (app.plan_files == nullptr) {
    PENSTOCK_ASSIGN(const Transform made, app.make(request));
    PENSTOCK_TRY(accelerator->check_layout(made.layout));
  }
  PENSTOCK_ASSIGN(request.batch, bounded_option(options, "batch", kLargestBatch, request.batch));
  PENSTOCK_ASSIGN(request.prefetch, bounded_option(options, "prefetch", kUnbounded, request.prefetch));
  if (app.in_memory && request.prefetch != 0)
    return make_error(Errc::invalid_argument, "--prefetch has no effect on '" + std::string(app.name) +
                                                  "', which holds all samples in memory: leave it out");
  const uint64_t cpu_count = std::min<uint64_t>(usable_cpus(), kMostThreads);
  PENSTOCK_ASSIGN(request.threads, bounded_option(options, "threads", kMostThreads,
                                                  request.threads != 0 ? request.threads : cpu_count));
  PENSTOCK_ASSIGN(request.depth, bounded_option(options, "depth", kMostQueueDepth, 0));
  request.stall_timeout = options.duration("stall-timeout");
  if (options.given("au")) request.required_utilization = options.real("au");
  PENSTOCK_TRY(take_limits(options, request.limits));
  if (options.flag("find-accelerators")) PENSTOCK_TRY(request_search(options, *accelerator, request));
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

const Transform& TrainPlan::transform() const {
  return files() != nullptr ? files()->training.app_transform : std::get<Transform>(input);
}

Sampler TrainPlan::sampler(uint64_t samples) const {
  return {samples, shuffle, seed, ranks->rank(), ranks->size()};
}

uint64_t TrainPlan::samples_an_epoch() const {
  return sampler().per_epoch() * (files() != nullptr ? files()->training.files.smallest_sample_count() : 1);
}

// How many steps a rank makes in an epoch, calculated as if all files had as many samples as the fullest
// file.
uint64_t TrainPlan::steps_an_epoch() const {
  const uint64_t units = corpus.manifest.samples() / uint64_t(ranks->size());
  return units * (files() != nullptr ? files()->training.files.largest_sample_count() : 1) / step_samples();
}

uint64_t TrainPlan::planned_steps() const {
  const PlanStart& start = limits.start;
  uint64_t epoch_steps = UINT64_MAX;
  if (limits.epochs != 0) {
    const uint64_t used_steps = start.used_samples / (uint64_t(ranks->size()) * step_samples());
    const uint64_t epochs = limits.epochs - std::min(limits.epochs, start.epoch);
    if (__builtin_mul_overflow(epochs, steps_an_epoch(), &epoch_steps)) epoch_steps = UINT64_MAX;
    epoch_steps -= std::min(epoch_steps, used_steps);
  }
  if (limits.batches == 0) return epoch_steps;
  return std::min(limits.batches - std::min(limits.batches, start.batches), epoch_steps);
}

double TrainPlan::planned_loads() const {
  const auto units = double(corpus.manifest.samples());
  if (in_memory()) return units;
  const double epoch_units = units / ranks->size();
  return (double(planned_steps()) / double(steps_an_epoch()) + 1) * epoch_units;
}

// Returns the value of --depth. Without that flag, returns 1 for whole files, and for a back end without a
// queue of its own, where more reads in flight only cost time. Otherwise returns kUsualQueueDepth.
size_t TrainPlan::queue_depth(const Tier& tier) const {
  if (depth != 0) return depth;
  return tier.backend->caps().async && files() == nullptr ? kUsualQueueDepth : 1;
}

// The shape of the loader's batches. A batch has only one slot if each batch is a whole file, or if all
// samples are first loaded into memory.
BatchShape TrainPlan::batch_shape(bool in_place) const {
  const Manifest& manifest = corpus.manifest;
  // The loader first copies the stored bytes of a sample, and then undoes its form in the same memory.
  const uint64_t most_bytes = std::max(manifest.payload_bytes(), bytes_of_samples(manifest));
  const uint64_t mean_bytes = most_bytes / std::max<uint64_t>(1, manifest.samples());
  const size_t slot_bytes = transform().slot_bytes;
  const bool one_slot = in_memory() || files() != nullptr;
  return {.samples = one_slot ? 1 : size_t(step_samples()),
          .slot_bytes = slot_bytes,
          .stored_bytes = slot_bytes != 0 || in_place ? 0 : mean_bytes,
          .in_place = in_place};
}

uint64_t TrainPlan::pool_prefetch() const {
  return in_memory() ? kLoadPrefetch : prefetch;
}

std::string_view TrainPlan::why_copied(const Tier& tier) const {
  uint64_t pool_samples = 0;  // samples in all batches of the pool
  if (__builtin_add_overflow(pool_prefetch(), 1, &pool_samples) ||
      __builtin_mul_overflow(pool_samples, uint64_t{batch_shape(true).samples}, &pool_samples))
    pool_samples = UINT64_MAX;
  return penstock::why_copied(corpus.manifest, *tier.backend, queue_depth(tier), pool_samples);
}

Result<void> check_epoch_size(const TrainPlan& plan) {
  const uint64_t samples = plan.samples_an_epoch();
  const uint64_t largest_batch = samples / plan.accelerators;
  if (largest_batch >= plan.batch) return success();
  const int ranks = plan.ranks->size();
  const std::string has_text = "'" + plan.corpus.name + "' has " + format_count(samples) + " samples" +
                               (ranks == 1 ? "" : " for each of " + std::to_string(ranks) + " ranks");
  const std::string needs_text = plan.accelerators == 1 ? "one batch of " + std::to_string(plan.batch)
                                                        : std::to_string(plan.accelerators) + " batches of " +
                                                              std::to_string(plan.batch);
  return make_error(Errc::invalid_argument,
                    has_text + ", fewer than " + needs_text + ": choose " +
                        (largest_batch == 0 ? "fewer --accelerators"
                                            : "--batch " + std::to_string(largest_batch) + " or smaller"));
}

Result<TrainPlan> make_plan(TrainRequest request, const Options& options) {
  PENSTOCK_ASSIGN(Corpus corpus, open_train_corpus(options, request));
  PENSTOCK_ASSIGN(std::vector<Tier> others,
                  open_tiers(options.texts("tier"), corpus.tier.name, request.named_tiers));
  PENSTOCK_TRY(check_cache_request(corpus.tier, request.cache));
  bool in_place = corpus.tier.backend->caps().zero_copy;
  std::string scratch;
  for (const Tier& tier : others) {
    PENSTOCK_TRY(check_cache_request(tier, request.cache));
    in_place |= tier.backend->caps().zero_copy;
    if (request.bad_sample == BadSample::fail && !may_hang(tier))
      PENSTOCK_TRY(check_copy(tier, corpus, corpus.manifest.objects(),
                              [&](uint32_t object) { return corpus.manifest.object_name(object, scratch); }));
  }
  // If samples are used in place, many objects stay open, so raise the limit of file descriptors.
  if (in_place) raise_descriptor_limit();
  if (options.flag("only-tiers") && others.empty())
    return make_error(Errc::invalid_argument, "--only-tiers needs a --tier to measure");
  if (options.flag("only-tiers") && options.given("overlay"))
    return make_error(
        Errc::invalid_argument,
        "--overlay replaces the corpus's own tier, which --only-tiers leaves out: leave one of them out");
  TrainPlan plan{std::move(request), std::move(corpus), std::move(others), options.flag("only-tiers")};
  PENSTOCK_TRY(try_epoch_checkpoints(plan));
  if (plan.app->plan_files != nullptr) {
    PENSTOCK_TRY(open_files(options, plan));
  } else {
    PENSTOCK_ASSIGN(plan.input, plan.app->make(plan));
  }
  return plan;
}

Result<std::unique_ptr<BatchSource>> make_batches(const TrainPlan& plan, const Tier& tier, BatchPool& pool,
                                                  const PlanLimits& limits, SpanLog* spans) {
  LoaderSettings settings{.manifest = &plan.corpus.manifest,
                          .backend = tier.backend.get(),
                          .app_transform = &plan.transform(),
                          .pool = &pool,
                          .sampler = plan.sampler(),
                          .limits = limits,
                          .threads = unsigned(plan.threads),
                          .bad_sample = plan.bad_sample,
                          .depth = plan.queue_depth(tier),
                          .patience = plan.stall_timeout,
                          .spans = spans,
                          .advises_skip = plan.bad_sample == BadSample::fail && !plan.saving};
  if (const FileInput* const input = plan.files()) return make_file_batches(plan, *input, limits, settings);
  // Every rank loads all samples, since each epoch's order may give it any of them.
  if (plan.in_memory()) {
    settings.sampler = Sampler(plan.corpus.manifest.samples(), Shuffle::none, 0);
    settings.limits = {.epochs = 1};
  }
  PENSTOCK_ASSIGN(std::unique_ptr<BatchLoader> loader, BatchLoader::make(settings));
  if (!plan.in_memory()) return std::unique_ptr<BatchSource>(std::move(loader));
  return make_memory_batches(std::move(loader), pool, limits,
                             [&plan](uint64_t samples) { return plan.sampler(samples); });
}

}  // namespace penstock
