#include "miniapps/train/validating.hpp"

#include <algorithm>
#include <chrono>
#include <numeric>
#include <string>
#include <utility>

#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/train/published_bandwidth.hpp"
#include "miniapps/train/train_metrics.hpp"
#include "miniapps/train/train_outcome.hpp"

namespace penstock {

Validating::Validating(const Validation& how, Backend& backend, const Manifest& samples, Sampler sampler,
                       BatchPool pool, std::unique_ptr<Accelerator> accelerator,
                       const ValidatingSettings& settings)
    : how_(how),
      backend_(backend),
      samples_(samples),
      sampler_(sampler),
      pool_(std::move(pool)),
      accelerator_(std::move(accelerator)),
      settings_(settings),
      epoch_(settings.epoch) {}

Result<std::unique_ptr<Validating>> Validating::make(const Validation& how, Backend& backend,
                                                     const Manifest& samples, const std::string& accelerator,
                                                     const ValidatingSettings& settings) {
  const WholeObjects& files = how.set.files;
  const Sampler sampler(files.samples_of_object.size(), Shuffle::none, settings.seed, settings.rank,
                        settings.ranks);
  if (sampler.per_epoch() == 0)
    return make_error(Errc::invalid_argument, "there are " + std::to_string(files.samples_of_object.size()) +
                                                  " files to validate on, fewer than the " +
                                                  std::to_string(settings.ranks) + " ranks");
  ValidatingSettings own = settings;
  own.batch = std::min<std::uint64_t>(settings.batch, sampler.per_epoch() * files.smallest_sample_count());
  PENSTOCK_ASSIGN(
      BatchPool pool,
      BatchPool::make({.samples = 1, .slot_bytes = how.set.app_transform.slot_bytes}, settings.prefetch));
  PENSTOCK_ASSIGN(std::unique_ptr<Accelerator> works, make_accelerator(accelerator));
  return std::unique_ptr<Validating>(
      new Validating(how, backend, samples, sampler, std::move(pool), std::move(works), own));
}

bool Validating::pass_due(std::uint64_t step, const Batch* next) const {
  if (next == nullptr) return how_.at_the_end && step > settings_.made;
  if (how_.every_steps != 0) return step > 0 && step % how_.every_steps == 0;
  return epoch_ && *epoch_ != next->epoch;
}

Result<bool> Validating::before_step(std::uint64_t steps, const Batch* next) {
  const bool now = pass_due(settings_.made + steps, next);
  if (now) PENSTOCK_TRY(pass());
  if (next != nullptr) epoch_ = next->epoch;
  return now;
}

Result<void> Validating::begin() {
  if (source_ && !how_.reload_each_pass) return success();
  figures_ = figures();
  losses_ = losses();
  source_.reset();
  // reload_each_pass: one pass, always in the order of epoch 0. Otherwise the source continues from `epoch_`,
  // and each pass orders the samples of a file differently (file_order()).
  const PlanLimits limits =
      how_.reload_each_pass ? PlanLimits{.epochs = 1} : PlanLimits{.start = {.epoch = epoch_.value_or(0)}};
  PENSTOCK_ASSIGN(std::unique_ptr<BatchLoader> loader,
                  BatchLoader::make({&how_.set.files.manifest, &backend_, &how_.set.app_transform, &pool_,
                                     sampler_, limits, settings_.threads, settings_.bad_sample,
                                     settings_.depth, settings_.patience}));
  FileBatchesSettings batches{.corpus = &samples_,
                              .files = &how_.set.files,
                              .sample_bytes = how_.set.sample_bytes,
                              .batch = static_cast<std::size_t>(settings_.batch),
                              .seed = settings_.seed,
                              .pauses = true};
  PENSTOCK_ASSIGN(source_, FileBatches::make(std::move(loader), batches));
  return success();
}

Result<void> Validating::pass() {
  PENSTOCK_TRY(begin());
  accelerator_->set_step_end(std::chrono::steady_clock::now());  // it has been idle since the last pass
  while (true) {
    PENSTOCK_ASSIGN(const Batch* const batch, source_->next());
    if (batch == nullptr) break;
    PENSTOCK_TRY(accelerator_->step(*batch));
    figures_.samples += batch->samples();
    figures_.bytes += std::accumulate(batch->length.begin(), batch->length.end(), std::uint64_t{0});
  }
  ++figures_.passes;
  return success();
}

ValidationFigures Validating::figures() const {
  ValidationFigures figures = figures_;
  if (!source_) return figures;
  figures.files += source_->files_used();
  figures.read_s += source_->times().front().busy_s;
  return figures;
}

LoaderLosses Validating::losses() const {
  LoaderLosses all = losses_;
  if (source_) all.add(source_->losses());
  return all;
}

void record_files(const TrainPlan& plan, const TrainOutcome& outcome, const ValidationFigures& validation,
                  Trial& trial) {
  const auto count = [&](const MetricInfo& metric, std::uint64_t value) {
    trial.sample(metric, static_cast<double>(value));
  };
  count(train_metrics::kFileReads, outcome.training_files + validation.files);
  trial.sample(train_metrics::kFileReadsOf, "training", static_cast<double>(outcome.training_files));
  trial.sample(train_metrics::kFileReadsOf, "validation", static_cast<double>(validation.files));
  if (validation.passes > 0) {
    count(train_metrics::kValidationPasses, validation.passes);
    count(train_metrics::kValidationSamples, validation.samples);
    trial.sample(train_metrics::kValidation, outcome.figures.observer_s);
  }
  const FileInput& input = *plan.files();
  if (input.bytes == nullptr || outcome.stages.empty()) return;
  // Read time of a rank's workers, in seconds: the mean over ranks.
  const double read_s = (outcome.stages.front().busy_s + validation.read_s) / plan.ranks->size();
  trial.sample(train_metrics::kFileRead, read_s);
  const StudiedBytes bytes = input.bytes(input, outcome.training_files, validation.files);
  trial.sample(train_metrics::kPublishedRate, published_bandwidth(bytes.published, read_s));
  trial.sample(train_metrics::kCorrectedRate, published_bandwidth(bytes.corrected, read_s));
}

// A batch of a pass takes a third of a step: validation only computes forward, which is about a third of a
// training step.
Result<std::unique_ptr<Validating>> make_validating(const TrainPlan& plan, const Tier& tier,
                                                    std::chrono::nanoseconds step) {
  const FileInput* const files = plan.files();
  if (files == nullptr || !files->validation || plan.find_accelerators) return nullptr;
  const std::string third = std::to_string(step.count() / 3) + "ns";
  Backend& backend = files->validation_backend == nullptr ? *tier.backend : *files->validation_backend;
  return Validating::make(
      *files->validation, backend, files->validated(), step.count() >= 3 ? "emulated:step=" + third : "none",
      {.batch = plan.step_samples(),
       .prefetch = plan.prefetch,
       .seed = plan.seed,
       .rank = plan.ranks->rank(),
       .ranks = plan.ranks->size(),
       .threads = static_cast<unsigned>(plan.threads),
       .depth = plan.queue_depth(tier),
       .bad_sample = plan.bad_sample,
       .patience = plan.stall_timeout,
       .made = plan.limits.start.batches,
       .epoch = plan.saving && plan.saving->resumed ? std::optional(plan.limits.start.epoch) : std::nullopt});
}

}  // namespace penstock
