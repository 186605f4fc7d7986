#include "miniapps/train/train_input.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "io_backends/core/units.hpp"
#include "miniapps/pipeline/file_batches.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/pipeline/memory_batches.hpp"
#include "miniapps/pipeline/ticket_reader.hpp"

namespace penstock {
namespace {

constexpr std::size_t kDepthOfQueues = 16;

}  // namespace

std::uint64_t samples_an_epoch(const TrainSetup& setup, const Sampler& sampler) {
  return sampler.per_epoch() * (setup.files ? setup.files->plan.training.files.least_held() : 1);
}

Result<Sampler> make_sampler(const TrainSetup& setup, const Corpus& corpus) {
  const Sampler sampler(corpus.manifest.samples(), setup.shuffle, setup.seed, setup.ranks->rank(),
                        setup.ranks->size());
  const std::uint64_t samples = samples_an_epoch(setup, sampler);
  const std::uint64_t most = samples / setup.accelerators;
  if (most >= setup.batch) return sampler;
  const std::string has =
      "'" + corpus.name + "' has " + format_count(samples) + " samples" +
      (setup.ranks->size() == 1 ? "" : " for each of " + std::to_string(setup.ranks->size()) + " ranks");
  const std::string asked = setup.accelerators == 1 ? "one batch of " + std::to_string(setup.batch)
                                                    : std::to_string(setup.accelerators) + " batches of " +
                                                          std::to_string(setup.batch);
  return make_error(
      Errc::invalid_argument,
      has + ", fewer than " + asked + ": choose " +
          (most == 0 ? "fewer --accelerators" : "--batch " + std::to_string(most) + " or smaller"));
}

// Of one rank, where all files hold as much as the fullest.
std::uint64_t steps_an_epoch(const TrainSetup& setup, const Corpus& corpus) {
  const std::uint64_t units = corpus.manifest.samples() / static_cast<std::uint64_t>(setup.ranks->size());
  const std::uint64_t held = setup.files ? setup.files->plan.training.files.most_held() : 1;
  return units * held / setup.step_samples();
}

std::uint64_t planned_steps(const TrainSetup& setup, const Corpus& corpus) {
  const PlanLimits& limits = setup.limits;
  const PlanStart& start = limits.start;
  std::uint64_t of_epochs = UINT64_MAX;
  if (limits.epochs != 0) {
    const std::uint64_t started =
        start.used / (static_cast<std::uint64_t>(setup.ranks->size()) * setup.step_samples());
    const std::uint64_t epochs = limits.epochs - std::min(limits.epochs, start.epoch);
    if (__builtin_mul_overflow(epochs, steps_an_epoch(setup, corpus), &of_epochs)) of_epochs = UINT64_MAX;
    of_epochs -= std::min(of_epochs, started);
  }
  if (limits.batches == 0) return of_epochs;
  return std::min(limits.batches - std::min(limits.batches, start.batches), of_epochs);
}

// A queue costs something where reads come at once, and is what a tier that has one is best read by.
std::size_t queue_depth(const TrainSetup& setup, const Tier& tier) {
  if (setup.depth != 0) return setup.depth;
  return tier.backend->caps().async && !setup.files ? kDepthOfQueues : 1;
}

std::string_view why_copied(const TrainSetup& setup, const Corpus& corpus, const Tier& tier) {
  std::uint64_t all = 0;  // samples of the pool
  if (__builtin_add_overflow(setup.pool_prefetch(), 1, &all) ||
      __builtin_mul_overflow(all, setup.pool_samples(), &all))
    all = UINT64_MAX;
  return why_copied(corpus.manifest, *tier.backend, queue_depth(setup, tier), all);
}

BatchShape batch_shape(const TrainSetup& setup, const Corpus& corpus, bool in_place) {
  const Manifest& manifest = corpus.manifest;
  const std::uint64_t mean = manifest.payload_bytes() / std::max<std::uint64_t>(1, manifest.samples());
  const std::size_t slot_bytes = setup.treats().slot_bytes();
  return {.samples = static_cast<std::size_t>(setup.pool_samples()),
          .slot_bytes = slot_bytes,
          .stored_bytes = slot_bytes != 0 || in_place ? 0 : mean,
          .in_place = in_place};
}

BeforeStep between_steps(const TrainSetup& setup, Validating* validating, EpochCheckpoints* checkpoints,
                         EpochCounter& epochs) {
  if (validating == nullptr && checkpoints == nullptr) return {};
  const std::uint64_t made = setup.limits.start.batches;
  const bool counted = !setup.files || setup.files->validation_backend == nullptr;
  return [=, &epochs](std::uint64_t steps, const Batch* next) -> Result<bool> {
    const std::uint64_t step = made + steps;
    bool did = false;
    if (validating != nullptr) {
      const std::uint64_t before = validating->figures().bytes;
      PENSTOCK_ASSIGN(did, validating->between(step, next));
      if (counted) epochs.exclude(validating->figures().bytes - before);
    }
    if (checkpoints == nullptr) return did;
    PENSTOCK_ASSIGN(const bool saved, checkpoints->between(step, next));
    return did || saved;
  };
}

// That many steps as files, where these all hold as much and come for certain; else without a bound, and the
// batches end it.
PlanLimits TrainInput::in_files(const PlanLimits& limits) const {
  const WholeObjects& files = setup_.files->plan.training.files;
  PlanLimits bound{.epochs = limits.epochs};
  if (limits.batches == 0 || files.least_held() != files.most_held() || steps_an_epoch() == 0 ||
      setup_.bad_sample == BadSample::skip || limits.start.batches != 0)
    return bound;
  const std::uint64_t per_epoch = files.held.size() / static_cast<std::uint64_t>(setup_.ranks->size());
  const std::uint64_t rest = limits.batches % steps_an_epoch() * setup_.step_samples();
  bound.batches =
      limits.batches / steps_an_epoch() * per_epoch + (rest + files.most_held() - 1) / files.most_held();
  return bound;
}

// Where in its files this rank goes on: all have used as many samples, which may be another number of files
// on each.
TrainInput::FilePlace TrainInput::place_in_files(const Sampler& sampler) const {
  const PlanStart& start = setup_.limits.start;
  FilePlace place{.samples = start.used / static_cast<std::uint64_t>(setup_.ranks->size())};
  for (EpochOrder order = sampler.epoch(start.epoch); order.left() > 0; ++place.files) {
    const auto file = static_cast<std::size_t>(order.next());
    const std::uint64_t held = setup_.files->plan.training.files.held[file].samples;
    if (place.samples < held) return place;
    place.samples -= held;
  }
  return {.files = place.files};
}

// Every rank holds all samples, and uses its part of each epoch's order.
Result<std::unique_ptr<BatchSource>> TrainInput::hold_in_memory(std::unique_ptr<BatchSource> samples,
                                                                const PlanLimits& limits) const {
  return std::unique_ptr<BatchSource>(
      std::make_unique<MemoryBatches>(std::move(samples), *room_,
                                      MemoryBatchesSettings{.shuffle = setup_.shuffle,
                                                            .seed = setup_.seed,
                                                            .rank = setup_.ranks->rank(),
                                                            .ranks = setup_.ranks->size(),
                                                            .limits = limits}));
}

Result<void> TrainInput::reserve() {
  if (!setup_.app->in_memory) return success();
  PENSTOCK_ASSIGN(room_, memory_room(corpus_.manifest.samples(), setup_.treats().slot_bytes(),
                                     static_cast<std::size_t>(setup_.step_samples())));
  return success();
}

Result<std::unique_ptr<BatchSource>> TrainInput::make(const PlanLimits& limits, SpanLog* spans) const {
  PENSTOCK_ASSIGN(Sampler sampler, make_sampler(setup_, corpus_));
  PlanLimits loads = limits;
  FilePlace first;
  if (setup_.files) {
    loads = in_files(limits);
    first = place_in_files(sampler);
    loads.start = {.epoch = limits.start.epoch, .own = first.files};
  }
  if (setup_.app->in_memory) {
    sampler = Sampler(corpus_.manifest.samples(), Shuffle::none, 0);
    loads = {.epochs = 1};
  }
  PENSTOCK_ASSIGN(std::unique_ptr<BatchLoader> loader,
                  BatchLoader::make(
                      {&corpus_.manifest, tier_.backend.get(), &setup_.treats(), &pool_},
                      {sampler, loads, setup_.threads, setup_.bad_sample, depth(), setup_.patience, spans}));
  if (setup_.app->in_memory) return hold_in_memory(std::move(loader), limits);
  if (!setup_.files) return std::unique_ptr<BatchSource>(std::move(loader));
  const FileSet& set = setup_.files->plan.training;
  PENSTOCK_ASSIGN(
      std::unique_ptr<BatchSource> batches,
      FileBatches::make(std::move(loader), {.corpus = setup_.files->samples.get(),
                                            .files = &set.files,
                                            .sample_bytes = set.sample_bytes,
                                            .batch = static_cast<std::size_t>(setup_.step_samples()),
                                            .most_batches = limits.batches,
                                            .handed = limits.start.batches,
                                            .in_first = first.samples,
                                            .seed = setup_.seed}));
  return batches;
}

// A pass takes the accelerator a third of a step a batch: it computes forwards only, which is a third of what
// training does.
Result<std::unique_ptr<Validating>> TrainInput::make_validating(std::chrono::nanoseconds step) const {
  if (!setup_.files || !setup_.files->plan.validation || setup_.find_accelerators) return nullptr;
  const FileWork& work = *setup_.files;
  const std::string third = std::to_string(step.count() / 3) + "ns";
  Backend& backend = work.validation_backend == nullptr ? *tier_.backend : *work.validation_backend;
  return Validating::make(
      *work.plan.validation, backend, work.validated(), step.count() >= 3 ? "emulated:step=" + third : "none",
      {.batch = setup_.step_samples(),
       .prefetch = setup_.prefetch,
       .seed = setup_.seed,
       .rank = setup_.ranks->rank(),
       .ranks = setup_.ranks->size(),
       .threads = setup_.threads,
       .depth = depth(),
       .bad_sample = setup_.bad_sample,
       .patience = setup_.patience,
       .made = setup_.limits.start.batches,
       .epoch = setup_.resumed ? std::optional(setup_.limits.start.epoch) : std::nullopt});
}

// Rank 0 writes for all, as the optimiser's state is the same on each.
Result<std::unique_ptr<EpochCheckpoints>> TrainInput::make_checkpoints() const {
  if (!setup_.checkpoints || setup_.ranks->rank() != 0 || setup_.find_accelerators) return nullptr;
  return EpochCheckpoints::make(*setup_.checkpoints, setup_.checkpoint_name(),
                                setup_.own.size(kModelOption.name), setup_.seed);
}

double TrainInput::planned_loads() const {
  const auto units = static_cast<double>(corpus_.manifest.samples());
  if (setup_.app->in_memory) return units;
  const double an_epoch = units / setup_.ranks->size();
  return (static_cast<double>(planned_steps()) / static_cast<double>(steps_an_epoch()) + 1) * an_epoch;
}

}  // namespace penstock
