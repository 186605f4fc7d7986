#include "miniapps/train/file_input.hpp"

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

Result<FileInput> take_files(const TrainRequest& request, Corpus& corpus, Corpus* validation) {
  PENSTOCK_ASSIGN(FileInput input, request.app->plan_files(request, corpus, validation));
  input.facts = corpus_facts(corpus);
  input.samples = std::make_unique<const Manifest>(
      std::exchange(corpus.manifest, std::move(input.training.files.manifest)));
  if (validation != nullptr) {
    input.validation_backend = validation->tier.backend.get();
    input.validation_samples = std::make_unique<const Manifest>(std::move(validation->manifest));
  }
  return input;
}

}  // namespace penstock
