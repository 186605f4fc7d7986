#include "miniapps/train/file_work.hpp"

#include <string>
#include <utility>

#include "miniapps/train/miniapp.hpp"

namespace penstock {

Result<std::vector<Hdf5Rows>> file_arrays(std::span<const std::byte> file,
                                          std::span<const Hdf5Wanted> wanted) {
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

Result<FileWork> take_files(const MiniAppInfo& app, const Options& options, std::uint64_t seed,
                            Shuffle shuffle, Corpus& corpus, Corpus* validation) {
  FileRequest request{.options = options,
                      .backend = *corpus.tier.backend,
                      .samples = corpus.manifest,
                      .seed = seed,
                      .shuffle = shuffle};
  if (validation != nullptr) {
    request.validation_backend = validation->tier.backend.get();
    request.validation_samples = &validation->manifest;
  }
  PENSTOCK_ASSIGN(FilePlan plan, app.plan_files(request));
  FileWork work{.facts = corpus_facts(corpus.manifest),
                .samples = nullptr,
                .plan = std::move(plan),
                .validation_samples = nullptr};
  work.samples = std::make_unique<const Manifest>(
      std::exchange(corpus.manifest, std::move(work.plan.training.files.manifest)));
  if (validation != nullptr) {
    work.validation_backend = validation->tier.backend.get();
    work.validation_samples = std::make_unique<const Manifest>(std::move(validation->manifest));
  }
  return work;
}

}  // namespace penstock
