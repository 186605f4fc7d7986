#include "miniapps/train/train_corpus.hpp"

#include <algorithm>
#include <string>
#include <string_view>

#include "datagen/format/sample_opener.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

// Describes a kind of samples, such as "raw samples of 3072 bytes in cifar (generate cifar10)". If an
// argument is empty, it is unknown or does not matter, and the text leaves it out.
std::string kind_text(std::string_view codec, const std::string& bytes, std::string_view format,
                      std::string_view recipe) {
  std::string text = codec.empty() ? "samples" : std::string(codec) + " samples";
  if (!bytes.empty()) text += " of " + bytes + " bytes";
  if (!format.empty()) text += " in " + std::string(format);
  if (!recipe.empty()) text += " (generate " + std::string(recipe) + ")";
  return text;
}

// Checks that the app can use the samples of this corpus. A scanned corpus has no known format and recipe, so
// these are not checked. Its objects may also be of different kinds; samples of a wrong kind then fail when
// they are loaded.
Result<void> check_kind(const MiniAppInfo& app, const Corpus& corpus) {
  const ManifestFacts& facts = corpus.manifest.facts();
  if (!app.codec.empty()) PENSTOCK_TRY(SampleOpener::make(corpus.manifest));
  const std::string codec(payload_codec(facts.codec));
  const bool scanned = facts.recipe == "scan";
  const bool codec_fits = app.codec.empty() || codec.empty() || codec == "mixed" ||
                          ("|" + std::string(app.codec) + "|").find("|" + codec + "|") != std::string::npos;
  const bool format_fits = app.format.empty() || scanned || facts.format == app.format;
  const bool recipe_fits = app.recipe.empty() || scanned || facts.recipe == app.recipe;
  const bool size_fits = app.sample_bytes == 0 || corpus.manifest.largest_extent() == app.sample_bytes;
  if (codec_fits && format_fits && recipe_fits && size_fits) return success();
  return make_error(
      Errc::invalid_argument,
      "'" + corpus.name + "' holds " +
          kind_text(codec, size_fits ? "" : "up to " + std::to_string(corpus.manifest.largest_extent()),
                    scanned ? "" : facts.format, scanned ? "" : facts.recipe) +
          "; " + std::string(app.name) + " takes " +
          kind_text(app.codec, app.sample_bytes == 0 ? "" : std::to_string(app.sample_bytes), app.format,
                    app.recipe));
}

// Checks a value of --decode that decodes less than the whole picture. A PNG cannot be decoded in part. If
// all pictures are PNG, the option would have no effect, and that is an error. If some are JPEG, a note tells
// the user that PNG is decoded whole.
Result<void> check_decode(const MiniAppInfo& app, const std::string& decode, const Corpus& corpus,
                          std::vector<std::string>& notes) {
  if (!app.takes_pictures || decode == "full") return success();
  const std::string_view codec = payload_codec(corpus.manifest.facts().codec);
  if (codec == "mixed")
    notes.push_back("'" + corpus.name + "' contains several kinds of samples: --decode " + decode +
                    " is for JPEG, and PNG is decoded whole");
  if (codec != "png") return success();
  return make_error(Errc::invalid_argument,
                    "'" + corpus.name +
                        "' contains PNG samples, which are always decoded whole: leave out --decode " +
                        decode + (decode == "crop" ? ", and add --set crop=random" : ""));
}

// Opens the data of a training. With --workload, a folder without a manifest is scanned (unless --manifest is
// given): DLIO writes no manifest.
Result<Corpus> open_data(const Options& options, const TrainRequest& request) {
  if (request.data.empty()) return make_error(Errc::invalid_argument, "train needs --data CORPUS");
  CorpusRequest wanted = corpus_request(options);
  wanted.threads = unsigned(request.threads);
  wanted.named_tiers = request.named_tiers;
  wanted.log = request.log;
  Result<Corpus> opened = open_corpus(request.data, wanted);
  if (opened.ok() || opened.error().code != Errc::not_found || request.workload.empty() || wanted.scan ||
      !wanted.manifest_file.empty())
    return opened;
  wanted.scan = true;
  return open_corpus(request.data, wanted);
}

}  // namespace

Result<Corpus> open_train_corpus(const Options& options, TrainRequest& request) {
  PENSTOCK_ASSIGN(Corpus corpus, open_data(options, request));
  PENSTOCK_TRY(check_kind(*request.app, corpus));
  PENSTOCK_TRY(check_decode(*request.app, options.text("decode"), corpus, request.notes));
  if (options.given("overlay")) PENSTOCK_TRY(apply_overlay(corpus, options.text("overlay")));
  return corpus;
}

Result<Corpus> open_validation_corpus(const Options& options, const TrainRequest& request) {
  CorpusRequest wanted = corpus_request(options);
  wanted.manifest_file.clear();  // --manifest is that of the training data
  wanted.threads = unsigned(request.threads);
  wanted.named_tiers = request.named_tiers;
  wanted.log = request.log;
  PENSTOCK_ASSIGN(Corpus corpus, open_corpus(options.text("validation"), wanted));
  PENSTOCK_TRY(check_kind(*request.app, corpus));
  return corpus;
}

std::vector<std::string> compare_with_workload(const TrainPlan& plan) {
  // Sizes vary from file to file, and DLIO's own files are not exactly as large as their workload says.
  constexpr double kSameSize = 1.5;
  const Corpus& corpus = plan.corpus;
  std::vector<std::string> differences;
  if (plan.described_samples == 0) return differences;
  const uint64_t samples = corpus.manifest.samples();
  const std::string& format = corpus.manifest.facts().format;
  if (samples != plan.described_samples || format != plan.described_format)
    differences.push_back("the workload is about " + format_count(plan.described_samples) + " samples in " +
                          plan.described_format + ", '" + corpus.name + "' has " + format_count(samples) +
                          (format.empty() ? "" : " in " + format));
  const double mean_bytes =
      double(bytes_of_samples(corpus.manifest)) / double(std::max<uint64_t>(1, samples));
  const double described_bytes = plan.described_sample_bytes;
  if (described_bytes > 0 &&
      (mean_bytes > described_bytes * kSameSize || mean_bytes * kSameSize < described_bytes))
    differences.push_back("the workload's samples have " + format_size(uint64_t(described_bytes)) +
                          " (record_length_bytes), those of '" + corpus.name + "' " +
                          format_size(uint64_t(mean_bytes)) +
                          " on average: its step time is for samples of another size");
  return differences;
}

std::vector<std::string> note_omissions(const TrainPlan& plan) {
  std::vector<std::string> notes;
  const std::string app(plan.app->name);
  const FileInput* const files = plan.files();
  if (files != nullptr && files->validation && !files->validation->at_the_end && plan.limits.epochs == 1)
    notes.push_back("'" + app + "' validates between epochs, and there is only one: nothing is validated");
  if (plan.app->writes_checkpoints && !plan.checkpoint_tier && !plan.saving)
    notes.push_back("without --checkpoint-to DIR '" + app + "' writes no checkpoints");
  if (files == nullptr && plan.corpus.manifest.facts().label_names.empty())
    notes.push_back("'" + plan.corpus.name + "' has no labels, so its batches have none");
  return notes;
}

}  // namespace penstock
