// Describes the input of an app that loads whole files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "datagen/format/hdf5_view.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/objects/whole_objects.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/batch_source.hpp"
#include "miniapps/pipeline/loader.hpp"
#include "miniapps/pipeline/transform.hpp"

namespace penstock {

// A set of files and the way to read them.
struct FileSet {
  WholeObjects files;
  // Transforms one file. Its slot has space for the samples of the fullest file, in the order of
  // file_order().
  Transform app_transform;
  size_t sample_bytes = 0;
  uint64_t file_bytes = 0;  // bytes of the first file
};

// Passes over other files between steps, as training programs validate their network.
struct Validation {
  FileSet set;
  // Validates after that many steps. 0: after each epoch.
  uint64_t every_steps = 0;
  bool at_the_end = false;  // validates after the last step as well
  // True: each pass loads all its files. False: the passes share one endless sequence of files. A pass ends
  // when the first file of the next round is loaded, and the next pass begins with that file.
  bool reload_each_pass = false;
};

// Bytes that were read: as the reproduced study calculated them (published), and as they really were
// (corrected).
struct StudiedBytes {
  uint64_t published_bytes = 0;
  uint64_t corrected_bytes = 0;
};

// How an app that loads whole files uses its corpus. The corpora that it was made from must outlive it.
struct FileInput {
  FileSet training;
  std::optional<Validation> validation{};
  // Calculates how many bytes these reads of files make. The numbers of reads are sums over all ranks.
  StudiedBytes (*bytes)(const FileInput& input, uint64_t training_reads, uint64_t validation_reads) = nullptr;

  // take_files() sets these, not the app.
  Json corpus_facts{};                                   // corpus_json() of the corpus as the user gave it
  std::unique_ptr<const Manifest> samples{};             // the corpus's own samples, which the files contain
  Backend* validation_backend = nullptr;                 // null: the tier that is being measured
  std::unique_ptr<const Manifest> validation_samples{};  // the samples of the corpus of --validation

  const Manifest& validation_manifest() const { return validation_samples ? *validation_samples : *samples; }
};

// Like hdf5_arrays(), for a file of the app's corpus. Whatever makes the file unusable, the error is
// `corrupt`.
Result<std::vector<Hdf5Rows>> file_arrays(std::span<const std::byte> file,
                                          std::span<const Hdf5ArrayRequest> wanted);

// Like hdf5_shape(), for the first file of the app's corpus. If the file exists but has no such array, the
// corpus is of another kind than the app needs: invalid_argument.
Result<std::vector<uint64_t>> first_shape(Backend& backend, std::string_view object, std::string_view array,
                                          std::string_view app);

struct TrainRequest;
struct TrainPlan;

// Makes the file input of the request's app. Afterwards the samples of `corpus` are the files to train on.
Result<FileInput> take_files(const TrainRequest& request, Corpus& corpus, Corpus* validation);

// Makes the batches of a plan with this input. `settings` are those of its loader, without the limits.
// Borrows all but the settings.
Result<std::unique_ptr<BatchSource>> make_file_batches(const TrainPlan& plan, const FileInput& input,
                                                       const PlanLimits& limits, LoaderSettings settings);

}  // namespace penstock
