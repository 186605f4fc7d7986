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
    : plan_(how),
      backend_(backend),
      manifest_(samples),
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
                                                  " validation files, too few for " +
                                                  std::to_string(settings.ranks) +
                                                  " ranks: start fewer ranks");
  ValidatingSettings fitted = settings;
  fitted.batch = std::min<uint64_t>(settings.batch, sampler.per_epoch() * files.smallest_sample_count());
  PENSTOCK_ASSIGN(
      BatchPool pool,
      BatchPool::make({.samples = 1, .slot_bytes = how.set.app_transform.slot_bytes}, settings.prefetch));
  PENSTOCK_ASSIGN(std::unique_ptr<Accelerator> made_accelerator, make_accelerator(accelerator));
  return std::unique_ptr<Validating>(
      new Validating(how, backend, samples, sampler, std::move(pool), std::move(made_accelerator), fitted));
}

bool Validating::pass_due(uint64_t step, const Batch* next) const {
  if (next == nullptr) return plan_.at_the_end && step > settings_.made_steps;
  if (plan_.every_steps != 0) return step > 0 && step % plan_.every_steps == 0;
  return epoch_ && *epoch_ != next->epoch;
}

Result<bool> Validating::before_step(uint64_t steps, const Batch* next) {
  const bool is_due = pass_due(settings_.made_steps + steps, next);
  if (is_due) PENSTOCK_TRY(run_pass());
  if (next != nullptr) epoch_ = next->epoch;
  return is_due;
}

Result<void> Validating::start_pass() {
  if (batches_ && !plan_.reload_each_pass) return success();
  figures_ = figures();
  losses_ = losses();
  batches_.reset();
  // With reload_each_pass, batches_ is made anew for each pass, which always has the order of epoch 0.
  // Otherwise batches_ is made once and starts at `epoch_`: then each pass is a new epoch, in which the
  // samples of a file have a different order (file_order()).
  const PlanLimits limits =
      plan_.reload_each_pass ? PlanLimits{.epochs = 1} : PlanLimits{.start = {.epoch = epoch_.value_or(0)}};
  PENSTOCK_ASSIGN(std::unique_ptr<BatchLoader> loader,
                  BatchLoader::make({&plan_.set.files.manifest, &backend_, &plan_.set.app_transform, &pool_,
                                     sampler_, limits, settings_.threads, settings_.bad_sample,
                                     settings_.depth, settings_.patience}));
  FileBatchesSettings batches{.corpus = &manifest_,
                              .files = &plan_.set.files,
                              .sample_bytes = plan_.set.sample_bytes,
                              .batch = size_t(settings_.batch),
                              .seed = settings_.seed,
                              .pauses_between_epochs = true};
  PENSTOCK_ASSIGN(batches_, FileBatches::make(std::move(loader), batches));
  return success();
}

Result<void> Validating::run_pass() {
  PENSTOCK_TRY(start_pass());
  // The accelerator's next step begins no earlier than now, so its idle time before the pass does not count.
  accelerator_->set_step_end(std::chrono::steady_clock::now());
  while (true) {
    PENSTOCK_ASSIGN(const Batch* const batch, batches_->next());
    if (batch == nullptr) break;
    PENSTOCK_TRY(accelerator_->step(*batch));
    figures_.samples += batch->samples();
    figures_.bytes += std::accumulate(batch->length.begin(), batch->length.end(), uint64_t{0});
  }
  ++figures_.passes;
  return success();
}

ValidationFigures Validating::figures() const {
  ValidationFigures figures = figures_;
  if (!batches_) return figures;
  figures.files += batches_->files_used();
  figures.read_s += batches_->times().front().busy_s;
  return figures;
}

LoaderLosses Validating::losses() const {
  LoaderLosses all = losses_;
  if (batches_) all.add(batches_->losses());
  return all;
}

void record_files(const TrainPlan& plan, const TrainOutcome& outcome, const ValidationFigures& validation,
                  Trial& trial) {
  const auto count = [&](const MetricInfo& metric, uint64_t value) { trial.sample(metric, double(value)); };
  count(train_metrics::kFileReads, outcome.training_files + validation.files);
  trial.sample(train_metrics::kFileReadsOf, "training", double(outcome.training_files));
  trial.sample(train_metrics::kFileReadsOf, "validation", double(validation.files));
  if (validation.passes > 0) {
    count(train_metrics::kValidationPasses, validation.passes);
    count(train_metrics::kValidationSamples, validation.samples);
    trial.sample(train_metrics::kValidation, outcome.figures.observer_s);
  }
  const FileInput& input = *plan.files();
  if (input.bytes == nullptr || outcome.stages.empty()) return;
  // The time that the workers of a rank spent in reads, in seconds, as the mean over the ranks.
  const double read_s = (outcome.stages.front().busy_s + validation.read_s) / plan.ranks->size();
  trial.sample(train_metrics::kFileRead, read_s);
  const StudiedBytes bytes = input.bytes(input, outcome.training_files, validation.files);
  trial.sample(train_metrics::kPublishedRate, published_bandwidth(bytes.published_bytes, read_s));
  trial.sample(train_metrics::kCorrectedRate, published_bandwidth(bytes.corrected_bytes, read_s));
}

// Makes the validation of the plan. For each batch its accelerator takes a third of the time of a training
// step: validation only computes forward, which is about a third of the work.
Result<std::unique_ptr<Validating>> make_validating(const TrainPlan& plan, const Tier& tier,
                                                    std::chrono::nanoseconds step) {
  const FileInput* const files = plan.files();
  if (files == nullptr || !files->validation || plan.searches_accelerators) return nullptr;
  const std::string third_of_step = std::to_string(step.count() / 3) + "ns";
  Backend& backend = files->validation_backend == nullptr ? *tier.backend : *files->validation_backend;
  return Validating::make(
      *files->validation, backend, files->validation_manifest(),
      step.count() >= 3 ? "emulated:step=" + third_of_step : "none",
      {.batch = plan.step_samples(),
       .prefetch = plan.prefetch,
       .seed = plan.seed,
       .rank = plan.ranks->rank(),
       .ranks = plan.ranks->size(),
       .threads = unsigned(plan.threads),
       .depth = plan.queue_depth(tier),
       .bad_sample = plan.bad_sample,
       .patience = plan.stall_timeout,
       .made_steps = plan.limits.start.batches,
       .epoch = plan.saving && plan.saving->resumed ? std::optional(plan.limits.start.epoch) : std::nullopt});
}

}  // namespace penstock
