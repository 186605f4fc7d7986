#include "miniapps/train/file_input.hpp"

#include <algorithm>
#include <string>
#include <utility>

#include "miniapps/pipeline/file_batches.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

// Converts a limit in steps to a limit in files. Possible only if all files hold the same number of samples,
// bad samples are not skipped, and the run does not resume. Otherwise there is no limit in files: FileBatches
// ends the run.
PlanLimits limits_in_files(const TrainPlan& plan, const FileInput& input, const PlanLimits& limits) {
  const WholeObjects& files = input.training.files;
  PlanLimits bound{.epochs = limits.epochs};
  if (limits.batches == 0 || files.smallest_sample_count() != files.largest_sample_count() ||
      plan.steps_an_epoch() == 0 || plan.bad_sample == BadSample::skip || limits.start.batches != 0)
    return bound;
  const std::uint64_t per_epoch =
      files.samples_of_object.size() / static_cast<std::uint64_t>(plan.ranks->size());
  const std::uint64_t rest = limits.batches % plan.steps_an_epoch() * plan.step_samples();
  bound.batches = limits.batches / plan.steps_an_epoch() * per_epoch +
                  (rest + files.largest_sample_count() - 1) / files.largest_sample_count();
  return bound;
}

// Finds where this rank continues in its order of files. All ranks have used the same number of samples, but
// maybe of different numbers of files. Returns the files that are used up; `samples` becomes the used samples
// of the next file.
std::uint64_t used_files(const TrainPlan& plan, const FileInput& input, std::uint64_t& samples) {
  const PlanStart& start = plan.limits.start;
  samples = start.used / static_cast<std::uint64_t>(plan.ranks->size());
  std::uint64_t files = 0;
  for (EpochOrder order = plan.sampler().epoch(start.epoch); order.left() > 0; ++files) {
    const std::uint64_t held =
        input.training.files.samples_of_object[static_cast<std::size_t>(order.next())].samples;
    if (samples < held) return files;
    samples -= held;
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

Result<std::vector<std::uint64_t>> first_shape(Backend& backend, std::string_view object,
                                               std::string_view array, std::string_view app) {
  Result<std::vector<std::uint64_t>> shape = hdf5_shape(backend, object, array);
  if (shape.ok() || shape.error().code != Errc::not_found || !backend.open(object).ok()) return shape;
  return make_error(Errc::invalid_argument, shape.error().what + "; " + std::string(app) +
                                                " takes files as 'generate " + std::string(app) +
                                                "' makes them");
}

Result<FileInput> take_files(const TrainRequest& request, Corpus& corpus, Corpus* validation) {
  PENSTOCK_ASSIGN(FileInput input, request.app->plan_files(request, corpus, validation));
  input.facts = corpus_json(corpus.manifest);
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
  std::uint64_t in_first = 0;  // used samples of the first file
  settings.limits = limits_in_files(plan, input, limits);
  settings.limits.start = {.epoch = limits.start.epoch,
                           .own_extra_samples = used_files(plan, input, in_first)};
  PENSTOCK_ASSIGN(std::unique_ptr<BatchLoader> loader, BatchLoader::make(settings));
  PENSTOCK_ASSIGN(
      std::unique_ptr<BatchSource> batches,
      FileBatches::make(std::move(loader), {.corpus = input.samples.get(),
                                            .files = &input.training.files,
                                            .sample_bytes = input.training.sample_bytes,
                                            .batch = static_cast<std::size_t>(plan.step_samples()),
                                            .most_batches = limits.batches,
                                            .handed = limits.start.batches,
                                            .in_first = in_first,
                                            .seed = plan.seed}));
  return batches;
}

}  // namespace penstock
