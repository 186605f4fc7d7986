// Loads whole HDF5 files with detector images, as the benchmark HEPCNNB does.
#include <array>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "miniapps/pipeline/file_batches.hpp"
#include "miniapps/pipeline/pixels.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/published_bandwidth.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

// The data sets that HEPCNNB reads: five of the nine in a file. Each data set has one row for each sample.
constexpr std::array<Hdf5ArrayRequest, 5> kHepcnnReadArrays{
    {{"data", Element::f32}, {"label"}, {"normweight"}, {"weight"}, {"psr"}}};
constexpr std::array<std::string_view, 1> kHepcnnStages{"transpose"};

struct Images {
  size_t channels = 0;
  size_t height = 0;
  size_t width = 0;

  size_t pixels() const { return height * width; }
  size_t bytes() const { return channels * pixels() * sizeof(float); }
  bool matches(const std::vector<uint64_t>& shape) const {
    return shape.size() == 4 && shape[1] == channels && shape[2] == height && shape[3] == width;
  }
};

std::string text_of(const std::vector<uint64_t>& shape) {
  std::string text;
  for (const uint64_t side : shape) text += (text.empty() ? "" : "x") + std::to_string(side);
  return text;
}

// Converts the images of a file from planes to pixels, in the order of file_order().
class FileSampleTransform final : public SampleTransform {
 public:
  FileSampleTransform(const Images& images,
                      std::shared_ptr<const std::vector<WholeObjects::ObjectSamples>> file_samples,
                      uint64_t seed)
      : images_(images), file_samples_(std::move(file_samples)), seed_(seed), planes_(images.channels) {}

  Result<void> apply(const SampleKey& key, std::span<const std::byte> stored, std::span<std::byte> slot,
                     StageTimer& timer) override {
    PENSTOCK_ASSIGN(const std::vector<Hdf5Rows> arrays, file_arrays(stored, kHepcnnReadArrays));
    const uint32_t samples = (*file_samples_)[size_t(key.index)].samples;
    PENSTOCK_TRY(check_shapes(arrays, samples));
    const Permutation order = file_order(seed_, key.epoch, key.index, samples);
    for (uint32_t i = 0; i < samples; ++i)
      transpose(arrays.front().row(order.at(i)), slot.subspan(i * images_.bytes(), images_.bytes()));
    timer.end_part(kFirstOwnPart);
    return success();
  }

 private:
  Result<void> check_shapes(const std::vector<Hdf5Rows>& arrays, uint32_t samples) const {
    if (!images_.matches(arrays.front().shape))
      return make_error(Errc::corrupt,
                        "its data are " + text_of(arrays.front().shape) + ", not " +
                            text_of({samples, images_.channels, images_.height, images_.width}));
    for (size_t i = 0; i < arrays.size(); ++i)
      if (arrays[i].rows() != samples)
        return make_error(Errc::corrupt, "the dataset '" + std::string(kHepcnnReadArrays[i].array) +
                                             "' has " + std::to_string(arrays[i].rows()) + " rows, not the " +
                                             std::to_string(samples) + " of the manifest");
    return success();
  }
  void transpose(std::span<const std::byte> stored, std::span<std::byte> image) {
    for (size_t c = 0; c < planes_.size(); ++c)
      planes_[c].values = stored.data() + c * images_.pixels() * sizeof(float);
    planes_to_pixels(planes_, images_.pixels(), reinterpret_cast<float*>(image.data()));
  }

  const Images images_;
  const std::shared_ptr<const std::vector<WholeObjects::ObjectSamples>>
      file_samples_;  // shared by all workers
  const uint64_t seed_;
  std::vector<Plane> planes_;
};

Transform file_transform(const Images& images, const WholeObjects& files, uint64_t seed) {
  return {.slot_bytes = files.largest_sample_count() * images.bytes(),
          .layout = "f32 NHWC " + text_of({images.height, images.width, images.channels}),
          .stages = kHepcnnStages,
          .make = [images, seed,
                   file_samples = std::make_shared<const std::vector<WholeObjects::ObjectSamples>>(
                       files.samples_of_object)]() -> Result<std::unique_ptr<SampleTransform>> {
            return std::make_unique<FileSampleTransform>(images, file_samples, seed);
          }};
}

Result<FileSet> file_set(Backend& backend, const Manifest& samples, uint64_t seed) {
  PENSTOCK_ASSIGN(WholeObjects files, whole_objects(samples));
  std::string scratch;
  PENSTOCK_ASSIGN(const std::vector<uint64_t> shape,
                  first_shape(backend, files.manifest.object_name(0, scratch),
                              kHepcnnReadArrays.front().array, "hepcnn"));
  if (shape.size() != 4)
    return make_error(Errc::invalid_argument, "'" + scratch + "': its data are " + text_of(shape) +
                                                  "; hepcnn needs images: samples, channels, height, width");
  const Images images{size_t(shape[1]), size_t(shape[2]), size_t(shape[3])};
  if (images.bytes() == 0)
    return make_error(Errc::invalid_argument, "'" + scratch + "': its images are empty");
  Transform app_transform = file_transform(images, files, seed);
  const uint64_t bytes = files.manifest.object_bytes(0);
  return FileSet{std::move(files), std::move(app_transform), images.bytes(), bytes};
}

uint64_t file_bytes(const FileSet& set) {
  return set.files.largest_sample_count() * set.sample_bytes;
}

StudiedBytes hepcnn_studied_bytes(const FileInput& plan, uint64_t training_reads, uint64_t validation_reads) {
  const HepcnnReads reads{.training_files = plan.training.files.samples_of_object.size(),
                          .training_reads = training_reads,
                          .validation_reads = validation_reads,
                          .training_bytes = file_bytes(plan.training),
                          .validation_bytes = plan.validation ? file_bytes(plan.validation->set) : 0};
  return {hepcnn_published_bytes(reads), hepcnn_corrected_bytes(reads)};
}

// Plans the reads so that their number fits the published counts. These counts mean that HEPCNNB validates on
// all its files after each epoch but the last. With global shuffling it makes a new list of files for each
// epoch, and validates after the last epoch too.
Result<FileInput> plan_hepcnn(const TrainRequest& request, const Corpus& corpus, const Corpus* validation) {
  PENSTOCK_ASSIGN(FileSet training, file_set(*corpus.tier.backend, corpus.manifest, request.seed));
  FileInput plan{.training = std::move(training), .bytes = &hepcnn_studied_bytes};
  if (validation == nullptr) return plan;
  PENSTOCK_ASSIGN(FileSet validation_set,
                  file_set(*validation->tier.backend, validation->manifest, request.seed));
  plan.validation.emplace(
      Validation{.set = std::move(validation_set), .at_the_end = request.shuffle == Shuffle::global});
  return plan;
}

}  // namespace

extern const MiniAppInfo miniapp_hepcnn;
const MiniAppInfo miniapp_hepcnn{
    .name = "hepcnn",
    .summary =
        "loads whole HDF5 files of detector images, transposes and permutes them in memory, and consumes "
        "them batch by batch",
    .options = {},
    .reproduces =
        "HEPCNNB as Chowdhury et al. measured it at NERSC: the cost of loading, with local and global "
        "shuffling",
    .codec = "raw",
    .format = "hdf5",
    .recipe = "hepcnn",
    .defaults = {.batch = 128, .prefetch = 0, .shuffle = "local", .threads = 1, .epochs = 5},
    .plan_files = plan_hepcnn};

}  // namespace penstock
