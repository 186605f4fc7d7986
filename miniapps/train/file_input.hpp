// What an app that loads whole files makes of the data that it is given.
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

// Files that are gone through, and how.
struct FileSet {
  WholeObjects files;
  // Of a file: its slot has room for as many samples as the fullest of them holds, in the order of
  // file_order().
  Transform app_transform;
  std::size_t sample_bytes = 0;
  std::uint64_t file_bytes = 0;  // of the first file
};

// Passes over files of their own between steps, as a network that is being trained is validated.
struct Validation {
  FileSet set;
  std::uint64_t every_steps = 0;  // after that many steps; 0: whenever an epoch is over
  bool at_the_end = false;        // and when the training is over
  bool starts_anew = false;  // each pass loads all files itself; else they come round and round: the file
                             // that ends a pass by beginning anew is the next one's first
};

// Bytes that were read, as the study that an app reproduces reckoned them, and as it was.
struct StudiedBytes {
  std::uint64_t published = 0;
  std::uint64_t corrected = 0;
};

// What an app that loads whole files makes of its corpus. The corpora that it was made from must outlive it.
struct FileInput {
  FileSet training;
  std::optional<Validation> validation{};
  // Of that number of reads over all ranks.
  StudiedBytes (*bytes)(const FileInput& input, std::uint64_t training_reads,
                        std::uint64_t validation_reads) = nullptr;

  // By take_files(); not the app's.
  Json facts{};                                          // corpus_json() of the corpus as it was given
  std::unique_ptr<const Manifest> samples{};             // its own, of which files are made up
  Backend* validation_backend = nullptr;                 // null: the tier that is being measured
  std::unique_ptr<const Manifest> validation_samples{};  // of the corpus of --validation

  const Manifest& validated() const { return validation_samples ? *validation_samples : *samples; }
};

// As hdf5_arrays(), of a file that an app was given: what it cannot use is `corrupt`, whatever is wrong with
// it.
Result<std::vector<Hdf5Rows>> file_arrays(std::span<const std::byte> file,
                                          std::span<const Hdf5Wanted> wanted);

// As hdf5_shape(), of the first file of what an app was given: where the file is there and has no such array,
// the files are of another kind than the app takes, which is invalid_argument.
Result<std::vector<std::uint64_t>> first_shape(Backend& backend, std::string_view object,
                                               std::string_view array, std::string_view app);

struct TrainRequest;
struct TrainPlan;

// The plan of the request's app. From then on the samples of `corpus` are the files to train on.
Result<FileInput> take_files(const TrainRequest& request, Corpus& corpus, Corpus* validation);

// The batches of a plan with this input: `settings` are those of its loader, but for the limits. Borrows all
// but the settings.
Result<std::unique_ptr<BatchSource>> make_file_batches(const TrainPlan& plan, const FileInput& input,
                                                       const PlanLimits& limits, LoaderSettings settings);

}  // namespace penstock
