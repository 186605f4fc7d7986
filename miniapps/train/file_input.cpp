#include "miniapps/train/file_input.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "miniapps/pipeline/file_batches.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

// Converts the run's limit in steps to a limit in files that the BatchLoader loads. This is possible only if
// all files hold the same number of samples, bad samples are not skipped, and the run does not resume. In
// other cases there is no limit in files, and FileBatches ends the run after the right number of steps.
PlanLimits limits_in_files(const TrainPlan& plan, const FileInput& input, const PlanLimits& limits) {
  const WholeObjects& files = input.training.files;
  PlanLimits file_limits{.epochs = limits.epochs};
  if (limits.batches == 0 || files.smallest_sample_count() != files.largest_sample_count() ||
      plan.steps_an_epoch() == 0 || plan.bad_sample == BadSample::skip || limits.start.batches != 0)
    return file_limits;
  const uint64_t files_per_epoch = files.samples_of_object.size() / uint64_t(plan.ranks->size());
  const uint64_t rest_samples = limits.batches % plan.steps_an_epoch() * plan.step_samples();
  file_limits.batches = limits.batches / plan.steps_an_epoch() * files_per_epoch +
                        (rest_samples + files.largest_sample_count() - 1) / files.largest_sample_count();
  return file_limits;
}

// Finds where this rank continues in its order of files after --resume. All ranks have used the same number
// of samples, but perhaps from different numbers of files. Returns how many files this rank has used up. Sets
// `samples` to how many samples of the next file it has used.
uint64_t used_files(const TrainPlan& plan, const FileInput& input, uint64_t& samples) {
  const PlanStart& start = plan.limits.start;
  samples = start.used_samples / uint64_t(plan.ranks->size());
  uint64_t files = 0;
  for (EpochOrder order = plan.sampler().epoch(start.epoch); order.left() > 0; ++files) {
    const uint64_t file_samples = input.training.files.samples_of_object[size_t(order.next())].samples;
    if (samples < file_samples) return files;
    samples -= file_samples;
  }
  samples = 0;
  return files;
}

}  // namespace

Result<std::vector<Hdf5Rows>> file_arrays(std::span<const std::byte> file,
                                          std::span<const Hdf5ArrayRequest> wanted) {
  Result<std::vector<Hdf5Rows>> arrays = hdf5_arrays(file, wanted);
  if (arrays.ok()) return arrays;
  Error error = std::move(arrays).error();
  if (error.code == Errc::not_found || error.code == Errc::unsupported) error.code = Errc::corrupt;
  return error;
}

Result<std::vector<uint64_t>> first_shape(Backend& backend, std::string_view object, std::string_view array,
                                          std::string_view app) {
  Result<std::vector<uint64_t>> shape = hdf5_shape(backend, object, array);
  if (shape.ok() || shape.error().code != Errc::not_found || !backend.open(object).ok()) return shape;
  return make_error(Errc::invalid_argument, shape.error().what + "; " + std::string(app) +
                                                " needs files as 'penstock generate " + std::string(app) +
                                                "' makes them");
}

Result<FileInput> take_files(const TrainRequest& request, Corpus& corpus, Corpus* validation) {
  PENSTOCK_ASSIGN(FileInput input, request.app->plan_files(request, corpus, validation));
  input.corpus_facts = corpus_json(corpus.manifest);
  input.samples = std::make_unique<const Manifest>(
      std::exchange(corpus.manifest, std::move(input.training.files.manifest)));
  if (validation != nullptr) {
    input.validation_backend = validation->tier.backend.get();
    input.validation_samples = std::make_unique<const Manifest>(std::move(validation->manifest));
  }
  return input;
}

Result<std::unique_ptr<BatchSource>> make_file_batches(const TrainPlan& plan, const FileInput& input,
                                                       const PlanLimits& limits, LoaderSettings settings) {
  uint64_t used_of_first_file = 0;  // used samples of the first file, after --resume
  settings.limits = limits_in_files(plan, input, limits);
  settings.limits.start = {.epoch = limits.start.epoch,
                           .own_extra_samples = used_files(plan, input, used_of_first_file)};
  PENSTOCK_ASSIGN(std::unique_ptr<BatchLoader> loader, BatchLoader::make(settings));
  PENSTOCK_ASSIGN(std::unique_ptr<BatchSource> batches,
                  FileBatches::make(std::move(loader), {.corpus = input.samples.get(),
                                                        .files = &input.training.files,
                                                        .sample_bytes = input.training.sample_bytes,
                                                        .batch = size_t(plan.step_samples()),
                                                        .most_batches = limits.batches,
                                                        .handed_batches = limits.start.batches,
                                                        .used_of_first_file = used_of_first_file,
                                                        .seed = plan.seed}));
  return batches;
}

}  // namespace penstock
