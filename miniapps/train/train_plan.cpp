#include "miniapps/train/train_plan.hpp"

#include <algorithm>
#include <bit>
#include <span>
#include <string>
#include <utility>

#include "datagen/format/sample_opener.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/descriptor_limit.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/in_place.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/train/epoch_checkpoints.hpp"

namespace penstock {
namespace {

constexpr std::size_t kDepthOfQueues = 16;
constexpr std::uint64_t kLoadedAhead = 255;  // samples in flight to memory

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

// What a workload names lies as DLIO has made it, without a manifest, or as `generate` has.
Result<Corpus> open_data(const Options& options, const TrainRequest& request) {
  if (request.data.empty()) return make_error(Errc::invalid_argument, "train needs --data CORPUS");
  OpenCorpus how{.scan = options.flag("scan"),
                 .manifest_file = options.text("manifest"),
                 .threads = static_cast<unsigned>(request.threads),
                 .types = options.text("types")};
  Result<Corpus> opened = open_corpus(request.data, how);
  if (opened.ok() || opened.error().code != Errc::not_found || request.workload.empty() || how.scan ||
      !how.manifest_file.empty())
    return opened;
  how.scan = true;
  return open_corpus(request.data, how);
}

// Opens the corpus of --validation, and lets the app plan by its files.
Result<void> open_files(const Options& options, TrainPlan& plan) {
  if (options.given("validation")) {
    PENSTOCK_ASSIGN(plan.validation_corpus,
                    open_corpus(options.text("validation"), {.scan = options.flag("scan"),
                                                             .threads = static_cast<unsigned>(plan.threads),
                                                             .types = options.text("types")}));
    PENSTOCK_TRY(check_kind(*plan.app, *plan.validation_corpus));
  }
  PENSTOCK_ASSIGN(plan.input,
                  take_files(plan, plan.corpus, plan.validation_corpus ? &*plan.validation_corpus : nullptr));
  PENSTOCK_ASSIGN(const std::unique_ptr<Accelerator> accelerator,
                  make_accelerator(plan.accelerator, {.count = plan.accelerators}));
  return accelerator->takes(plan.transform().layout);
}

// What is written about the work, all of which must be the same on all ranks.
std::string option_list(const TrainPlan& plan, const Options& options) {
  std::string words = std::string(plan.app->name) + "|" + plan.accelerator + "|" + plan.workload;
  for (const std::string& word : options.texts("set")) words += "|" + word;
  for (const char* name : {"decode", "resize", "on-error", "payload", "run"})
    words += "|" + options.text(name);
  if (plan.files() != nullptr && plan.files()->validation)
    words += "|" + plan.files()->validation->set.files.manifest.checksum();
  return words;
}

}  // namespace

const Transform& TrainPlan::transform() const {
  if (const FileInput* const set = files()) return set->training.app_transform;
  if (const MemoryInput* const memory = std::get_if<MemoryInput>(&input)) return memory->transform;
  return std::get<SampleInput>(input).transform;
}

Sampler TrainPlan::sampler() const {
  return {corpus.manifest.samples(), shuffle, seed, ranks->rank(), ranks->size()};
}

std::uint64_t TrainPlan::samples_an_epoch() const {
  return sampler().per_epoch() * (files() != nullptr ? files()->training.files.least_held() : 1);
}

// Of one rank, where all files hold as much as the fullest.
std::uint64_t TrainPlan::steps_an_epoch() const {
  const std::uint64_t units = corpus.manifest.samples() / static_cast<std::uint64_t>(ranks->size());
  return units * (files() != nullptr ? files()->training.files.most_held() : 1) / step_samples();
}

std::uint64_t TrainPlan::planned_steps() const {
  const PlanStart& start = limits.start;
  std::uint64_t of_epochs = UINT64_MAX;
  if (limits.epochs != 0) {
    const std::uint64_t started = start.used / (static_cast<std::uint64_t>(ranks->size()) * step_samples());
    const std::uint64_t epochs = limits.epochs - std::min(limits.epochs, start.epoch);
    if (__builtin_mul_overflow(epochs, steps_an_epoch(), &of_epochs)) of_epochs = UINT64_MAX;
    of_epochs -= std::min(of_epochs, started);
  }
  if (limits.batches == 0) return of_epochs;
  return std::min(limits.batches - std::min(limits.batches, start.batches), of_epochs);
}

double TrainPlan::planned_loads() const {
  const auto units = static_cast<double>(corpus.manifest.samples());
  if (in_memory()) return units;
  const double an_epoch = units / ranks->size();
  return (static_cast<double>(planned_steps()) / static_cast<double>(steps_an_epoch()) + 1) * an_epoch;
}

// A queue costs something where reads come at once, and is what a tier that has one is best read by.
std::size_t TrainPlan::queue_depth(const Tier& tier) const {
  if (depth != 0) return depth;
  return tier.backend->caps().async && files() == nullptr ? kDepthOfQueues : 1;
}

// Of one slot where a batch is a file, or a sample on its way to memory.
BatchShape TrainPlan::batch_shape(bool in_place) const {
  const Manifest& manifest = corpus.manifest;
  const std::uint64_t mean = manifest.payload_bytes() / std::max<std::uint64_t>(1, manifest.samples());
  const std::size_t slot_bytes = transform().slot_bytes;
  const bool single = !std::holds_alternative<SampleInput>(input);
  return {.samples = single ? 1 : static_cast<std::size_t>(step_samples()),
          .slot_bytes = slot_bytes,
          .stored_bytes = slot_bytes != 0 || in_place ? 0 : mean,
          .in_place = in_place};
}

std::uint64_t TrainPlan::pool_prefetch() const {
  return in_memory() ? kLoadedAhead : prefetch;
}

std::string_view TrainPlan::why_copied(const Tier& tier) const {
  std::uint64_t all = 0;  // samples of the pool
  if (__builtin_add_overflow(pool_prefetch(), 1, &all) ||
      __builtin_mul_overflow(all, std::uint64_t{batch_shape(true).samples}, &all))
    all = UINT64_MAX;
  return penstock::why_copied(corpus.manifest, *tier.backend, queue_depth(tier), all);
}

Result<void> check_epoch(const TrainPlan& plan) {
  const std::uint64_t samples = plan.samples_an_epoch();
  const std::uint64_t most = samples / plan.accelerators;
  if (most >= plan.batch) return success();
  const int ranks = plan.ranks->size();
  const std::string has = "'" + plan.corpus.name + "' has " + format_count(samples) + " samples" +
                          (ranks == 1 ? "" : " for each of " + std::to_string(ranks) + " ranks");
  const std::string asked = plan.accelerators == 1 ? "one batch of " + std::to_string(plan.batch)
                                                   : std::to_string(plan.accelerators) + " batches of " +
                                                         std::to_string(plan.batch);
  return make_error(
      Errc::invalid_argument,
      has + ", fewer than " + asked + ": choose " +
          (most == 0 ? "fewer --accelerators" : "--batch " + std::to_string(most) + " or smaller"));
}

Result<TrainPlan> make_plan(TrainRequest request, const Options& options) {
  PENSTOCK_ASSIGN(Corpus corpus, open_data(options, request));
  PENSTOCK_TRY(check_kind(*request.app, corpus));
  PENSTOCK_TRY(check_decode(*request.app, options.text("decode"), corpus));
  if (options.given("overlay")) PENSTOCK_TRY(lay_over(corpus, options.text("overlay")));
  PENSTOCK_ASSIGN(std::vector<Tier> others, open_tiers(options.texts("tier"), corpus.tier.name));
  PENSTOCK_TRY(check_cache_request(corpus.tier, request.cache));
  bool in_place = corpus.tier.backend->caps().zero_copy;
  for (const Tier& tier : others) {
    PENSTOCK_TRY(check_cache_request(tier, request.cache));
    in_place |= tier.backend->caps().zero_copy;
  }
  if (in_place) use_all_descriptors();  // samples that are used in place are open meanwhile
  TrainPlan plan{std::move(request), std::move(corpus), std::move(others)};
  PENSTOCK_ASSIGN(const std::unique_ptr<EpochCheckpoints> checkpoints, make_epoch_checkpoints(plan));
  if (checkpoints) PENSTOCK_TRY(checkpoints->try_place());
  if (plan.app->plan_files != nullptr) {
    PENSTOCK_TRY(open_files(options, plan));
    return plan;
  }
  PENSTOCK_ASSIGN(Transform transform, plan.app->make(plan));
  if (plan.app->in_memory) {
    plan.input = MemoryInput{std::move(transform)};
  } else {
    plan.input = SampleInput{std::move(transform)};
  }
  return plan;
}

Result<void> check_same_work(const TrainPlan& plan, const Options& options) {
  const std::string words = option_list(plan, options);
  const std::vector<std::uint64_t> numbers{crc32c(std::as_bytes(std::span(words))),
                                           plan.batch,
                                           plan.accelerators,
                                           plan.prefetch,
                                           plan.limits.batches,
                                           plan.limits.epochs,
                                           static_cast<std::uint64_t>(plan.shuffle.kind),
                                           plan.shuffle.places,
                                           plan.seed,
                                           static_cast<std::uint64_t>(plan.cache),
                                           plan.find_accelerators ? 1U : 0U,
                                           std::bit_cast<std::uint64_t>(plan.busy_at_least),
                                           plan.sample_log.empty() ? 0U : 1U,
                                           plan.timeline.empty() ? 0U : 1U,
                                           plan.checkpoints ? 1U : 0U,
                                           plan.saving ? plan.saving->every : 0U,
                                           plan.saving ? plan.saving->payload.bytes : 0U,
                                           plan.saving && plan.saving->fast ? 1U : 0U,
                                           plan.saving && plan.saving->resume ? 1U : 0U,
                                           plan.others.size()};
  std::vector<std::uint64_t> least = numbers;
  std::vector<std::uint64_t> most = numbers;
  PENSTOCK_TRY(plan.ranks->all_reduce(std::span(least), Reduction::min));
  PENSTOCK_TRY(plan.ranks->all_reduce(std::span(most), Reduction::max));
  if (least == most) return success();
  return make_error(
      Errc::invalid_argument,
      "the ranks were started with different flags: but for where data lie, all must do the same work");
}

Result<std::unique_ptr<BatchSource>> make_batches(const TrainPlan& plan, const Tier& tier, BatchPool& pool,
                                                  MemoryRoom& room, const PlanLimits& limits,
                                                  SpanLog* spans) {
  LoaderSettings settings{.manifest = &plan.corpus.manifest,
                          .backend = tier.backend.get(),
                          .app_transform = &plan.transform(),
                          .pool = &pool,
                          .sampler = plan.sampler(),
                          .limits = limits,
                          .threads = static_cast<unsigned>(plan.threads),
                          .bad_sample = plan.bad_sample,
                          .depth = plan.queue_depth(tier),
                          .patience = plan.patience,
                          .spans = spans};
  if (const FileInput* const input = plan.files()) return make_file_batches(plan, *input, limits, settings);
  // Every rank holds all samples, and uses its part of each epoch's order.
  if (plan.in_memory()) {
    settings.sampler = Sampler(plan.corpus.manifest.samples(), Shuffle::none, 0);
    settings.limits = {.epochs = 1};
  }
  PENSTOCK_ASSIGN(std::unique_ptr<BatchLoader> loader, BatchLoader::make(settings));
  if (!plan.in_memory()) return std::unique_ptr<BatchSource>(std::move(loader));
  return std::unique_ptr<BatchSource>(
      std::make_unique<MemoryBatches>(std::move(loader), room,
                                      MemoryBatchesSettings{.shuffle = plan.shuffle,
                                                            .seed = plan.seed,
                                                            .rank = plan.ranks->rank(),
                                                            .ranks = plan.ranks->size(),
                                                            .limits = limits}));
}

}  // namespace penstock
