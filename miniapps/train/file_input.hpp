// Describes the input of an app that loads whole files.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "datagen/format/hdf5/hdf5_view.hpp"
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
  // Transforms one file: puts its samples into a slot of the batch that the BatchLoader fills, in the order
  // of file_order(). A slot has space for as many samples as the fullest file has.
  Transform app_transform;
  size_t sample_bytes = 0;
  uint64_t file_bytes = 0;  // bytes of the first file
};

// Describes the validation between steps, by which training programs test their network: which files a pass
// loads, and when passes come.
struct Validation {
  FileSet set;
  // After how many steps there is a pass. 0: after each epoch.
  uint64_t every_steps = 0;
  bool at_the_end = false;  // one more pass after the final step
  // True: each pass loads all its files.
  // False: the passes share one endless sequence of files, round after round through all files. A pass ends
  // when the first file of the next round is loaded, and the next pass begins with that file.
  bool reload_each_pass = false;
};

// Bytes that the run read. `published_bytes`: as the study that the mini-app reproduces calculates them.
// `corrected_bytes`: the bytes that were really read.
struct StudiedBytes {
  uint64_t published_bytes = 0;
  uint64_t corrected_bytes = 0;
};

// How an app that loads whole files uses its corpus. It borrows from the corpora that it was made from, so
// they must outlive it.
struct FileInput {
  FileSet training;
  std::optional<Validation> validation{};
  // Calculates how many bytes were read by these numbers of file reads, which are sums over all ranks.
  StudiedBytes (*bytes)(const FileInput& input, uint64_t training_reads, uint64_t validation_reads) = nullptr;

  // The members below are set by take_files(), not by the app.
  Json corpus_facts{};                        // corpus_json() of the corpus as the user gave it
  std::unique_ptr<const Manifest> samples{};  // the samples in the files, as the user's corpus lists them
  // The back end of the tier that has the corpus of --validation. Null without --validation: then the
  // measured tier has the validation files.
  Backend* validation_backend = nullptr;
  std::unique_ptr<const Manifest> validation_samples{};  // the samples of the corpus of --validation

  const Manifest& validation_manifest() const { return validation_samples ? *validation_samples : *samples; }
};

// Reads arrays from a file of the app's corpus, by hdf5_arrays(). If the file lacks an array or cannot be
// used, the error is `corrupt`.
Result<std::vector<Hdf5Rows>> file_arrays(std::span<const std::byte> file,
                                          std::span<const Hdf5ArrayRequest> wanted);

// Returns the shape of an array in the first file of the app's corpus, by hdf5_shape(). If the file exists
// but has no such array, the corpus is not of the kind that the app needs, and the error is invalid_argument.
Result<std::vector<uint64_t>> first_shape(Backend& backend, std::string_view object, std::string_view array,
                                          std::string_view app);

struct TrainRequest;
struct TrainPlan;

// Makes the file input of the request's app. Afterwards each sample of `corpus` is a whole file to train on.
Result<FileInput> take_files(const TrainRequest& request, Corpus& corpus, Corpus* validation);

// Makes the batches of a plan from whole files. `settings` are those of the loader; their limits are not
// used. Borrows all but the settings.
Result<std::unique_ptr<BatchSource>> make_file_batches(const TrainPlan& plan, const FileInput& input,
                                                       const PlanLimits& limits, LoaderSettings settings);

}  // namespace penstock
