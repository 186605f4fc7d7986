// Loads whole HDF5 files with fields of weather data, one sample in each file, as ClimDeepLearn does.
#include <algorithm>
#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/random.hpp"
#include "miniapps/pipeline/pixels.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/published_bandwidth.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

constexpr std::string_view kStatisticsFile = "stats.h5";
constexpr std::array<Hdf5ArrayRequest, 2> kClimateReadArrays{
    {{"climate/data", Element::f32}, {"climate/labels", Element::f32}}};
constexpr Hdf5ArrayRequest kStatisticsArray{"climate/stats", Element::f32};
constexpr size_t kLargestColumn = 1;  // columns of the statistics: mean, largest, smallest, deviation
constexpr size_t kSmallestColumn = 2;
constexpr std::array<std::string_view, 1> kClimateStages{"normalise"};
constexpr uint64_t kSplitSeed = 12345;  // ClimDeepLearn splits its files by this seed
constexpr uint64_t kEpochSteps = 10;    // steps of training in an epoch, for any number of files

constexpr OptionSpec kClimateOptions[] = {{.name = "channels",
                                           .role = OptionRole::work,
                                           .type = OptionType::list,
                                           .value = "C,C,...",
                                           .fallback = "0,1,2,10",
                                           .help = "fields that the network uses, counted from 0"}};

struct Fields {
  size_t height = 0;
  size_t width = 0;
  uint64_t stored_channels = 0;

  size_t pixels() const { return height * width; }
};

// A channel that the network uses. The network gets value * scale + shift, which is between 0 and 1.
struct Channel {
  uint64_t number = 0;
  float scale = 1;
  float shift = 0;
};

// Writes the channels as pixels, then the label of each pixel as a 32-bit integer.
class FieldsSampleTransform final : public SampleTransform {
 public:
  FieldsSampleTransform(const Fields& fields, std::vector<Channel> channels)
      : fields_(fields), channels_(std::move(channels)), planes_(channels_.size()) {}

  Result<void> apply(const SampleKey&, std::span<const std::byte> stored, std::span<std::byte> slot,
                     StageTimer& timer) override {
    PENSTOCK_ASSIGN(const std::vector<Hdf5Rows> arrays, file_arrays(stored, kClimateReadArrays));
    const std::vector<uint64_t> data_shape{fields_.stored_channels, fields_.height, fields_.width};
    const std::vector<uint64_t> labels_shape{fields_.height, fields_.width};
    if (arrays[0].shape != data_shape || arrays[1].shape != labels_shape)
      return make_error(Errc::corrupt, "its data or labels have another shape than those of the first file");
    for (size_t c = 0; c < channels_.size(); ++c)
      planes_[c] = {arrays[0].row(channels_[c].number).data(), channels_[c].scale, channels_[c].shift};
    planes_to_pixels(planes_, fields_.pixels(), reinterpret_cast<float*>(slot.data()));
    copy_labels(arrays[1], slot.subspan(channels_.size() * fields_.pixels() * sizeof(float)));
    timer.end_part(kFirstOwnPart);
    return success();
  }

 private:
  void copy_labels(const Hdf5Rows& labels, std::span<std::byte> out) const {
    auto* label = reinterpret_cast<int32_t*>(out.data());
    for (size_t y = 0; y < fields_.height; ++y) {
      const std::byte* row = labels.row(y).data();
      for (size_t x = 0; x < fields_.width; ++x) {
        float value = 0;
        std::memcpy(&value, row + x * sizeof value, sizeof value);
        // A value that is no class (a NaN, or far out of range) becomes -1.
        *label++ = value > -1e6F && value < 1e6F ? int32_t(value) : -1;
      }
    }
  }

  const Fields fields_;
  const std::vector<Channel> channels_;
  std::vector<Plane> planes_;
};

Transform fields_transform(const Fields& fields, const std::vector<Channel>& channels) {
  return {.slot_bytes = fields.pixels() * (channels.size() * sizeof(float) + sizeof(int32_t)),
          .layout = "f32 NHWC " + std::to_string(fields.height) + "x" + std::to_string(fields.width) + "x" +
                    std::to_string(channels.size()) + " and i32 labels",
          .stages = kClimateStages,
          .make = [fields, channels]() -> Result<std::unique_ptr<SampleTransform>> {
            return std::make_unique<FieldsSampleTransform>(fields, channels);
          }};
}

Result<Fields> fields_of(Backend& backend, const WholeObjects& files) {
  std::string scratch;
  const std::string_view first = files.manifest.object_name(0, scratch);
  PENSTOCK_ASSIGN(const std::vector<uint64_t> shape,
                  first_shape(backend, first, kClimateReadArrays[0].array, "climate"));
  if (files.largest_sample_count() != 1)
    return make_error(Errc::invalid_argument,
                      "climate needs files with one sample each; some of these contain " +
                          std::to_string(files.largest_sample_count()));
  const Fields fields = shape.size() == 3 ? Fields{size_t(shape[1]), size_t(shape[2]), shape[0]} : Fields{};
  if (fields.pixels() != 0) return fields;
  return make_error(Errc::invalid_argument, "'{}': its '{}' are not fields of channels, height and width",
                    first, kClimateReadArrays[0].array);
}

// Returns the requested channels. Their scale and shift, which bring the values into the range from 0 to 1,
// are calculated from the statistics of all samples in stats.h5.
Result<std::vector<Channel>> channels_of(const Options& options, Backend& backend, const Fields& fields) {
  const std::vector<uint64_t>& requested = options.list("channels");
  for (const uint64_t channel : requested)
    if (channel >= fields.stored_channels)
      return make_error(Errc::invalid_argument, "there is no channel " + std::to_string(channel) +
                                                    " among the " + std::to_string(fields.stored_channels) +
                                                    " of these files: choose others with --set channels=0,1");
  const auto failed = [](const Error& error) {
    return make_error(error.code,
                      "cannot read '" + std::string(kStatisticsFile) +
                          "', which contains the minimum and maximum of all samples: " + error.what);
  };
  Result<std::unique_ptr<Reader>> reader = backend.open(kStatisticsFile);
  if (!reader.ok()) return failed(reader.error());
  const Result<uint64_t> size = (*reader)->size();
  if (!size.ok()) return failed(size.error());
  constexpr uint64_t kMostStatisticsBytes = uint64_t{16} << 20;
  std::vector<std::byte> file(size_t(std::min(*size, kMostStatisticsBytes)));
  if (const Result<void> read = (*reader)->read_at(0, file); !read.ok()) return failed(read.error());
  const Result<std::vector<Hdf5Rows>> arrays = hdf5_arrays(file, {&kStatisticsArray, 1});
  if (!arrays.ok()) return failed(arrays.error());
  const Hdf5Rows& statistics = arrays->front();
  if (statistics.shape.size() != 2 || statistics.shape[0] != fields.stored_channels ||
      statistics.shape[1] <= kSmallestColumn)
    return failed({Errc::corrupt, 0,
                   "its statistics are not of " + std::to_string(fields.stored_channels) + " channels"});
  std::vector<Channel> channels;
  for (const uint64_t number : requested) {
    std::array<float, kSmallestColumn + 1> row{};
    std::memcpy(row.data(), statistics.row(number).data(), sizeof row);
    const float range = row[kLargestColumn] - row[kSmallestColumn];
    const float scale = range > 0 ? 1.0F / range : 1.0F;
    channels.push_back({number, scale, -row[kSmallestColumn] * scale});
  }
  return channels;
}

// Returns the bytes of all file reads in training and validation, counted in two ways. The published figure
// counts only the part of a file that is used. The corrected figure counts the whole file. All files, of
// training and validation, have the same size.
StudiedBytes climate_studied_bytes(const FileInput& plan, uint64_t training_reads,
                                   uint64_t validation_reads) {
  const uint64_t file_reads = training_reads + validation_reads;
  constexpr uint64_t kStatisticsBytes = 32;
  return {climate_published_bytes(file_reads, plan.training.sample_bytes + kStatisticsBytes),
          climate_corrected_bytes(file_reads, plan.training.file_bytes)};
}

// Trains on 8/10 of the files and validates on another 1/10. A permutation that is always the same chooses
// them.
Result<FileInput> plan_climate(const TrainRequest& request, const Corpus& corpus,
                               const Corpus* validation_corpus) {
  if (validation_corpus != nullptr)
    return make_error(Errc::invalid_argument,
                      "climate validates on a tenth of --data: leave out --validation");
  PENSTOCK_ASSIGN(const WholeObjects all, whole_objects(corpus.manifest));
  PENSTOCK_ASSIGN(const Fields fields, fields_of(*corpus.tier.backend, all));
  PENSTOCK_ASSIGN(const std::vector<Channel> channels,
                  channels_of(request.app_options, *corpus.tier.backend, fields));
  const uint64_t files = all.samples_of_object.size();
  const uint64_t training_files = files * 8 / 10;
  const uint64_t validation_files = files / 10;
  if (validation_files == 0)
    return make_error(Errc::invalid_argument,
                      "climate needs at least 10 files, because it validates on a tenth of them; there are " +
                          std::to_string(files));
  const Permutation order(files, kSplitSeed);
  std::vector<uint64_t> file_indices(size_t(training_files + validation_files));
  for (uint64_t i = 0; i < file_indices.size(); ++i) file_indices[size_t(i)] = order.at(i);

  const auto set_of = [&](std::span<const uint64_t> chosen_files) -> Result<FileSet> {
    PENSTOCK_ASSIGN(WholeObjects set, select_objects(all, chosen_files));
    Transform app_transform = fields_transform(fields, channels);
    const size_t bytes = app_transform.slot_bytes;
    const uint64_t file_bytes = set.manifest.object_bytes(0);
    return FileSet{std::move(set), std::move(app_transform), bytes, file_bytes};
  };
  const std::span<const uint64_t> chosen_files(file_indices);
  PENSTOCK_ASSIGN(FileSet training_set, set_of(chosen_files.first(size_t(training_files))));
  PENSTOCK_ASSIGN(FileSet validation_set, set_of(chosen_files.subspan(size_t(training_files))));
  return FileInput{.training = std::move(training_set),
                   .validation = Validation{.set = std::move(validation_set),
                                            .every_steps = kEpochSteps,
                                            .at_the_end = true,
                                            .reload_each_pass = true},
                   .bytes = &climate_studied_bytes};
}

}  // namespace

extern const MiniAppInfo miniapp_climate;
const MiniAppInfo miniapp_climate{
    .name = "climate",
    .summary =
        "loads whole HDF5 files of weather fields: four normalised channels of each, and its label map",
    .options = kClimateOptions,
    .reproduces =
        "ClimDeepLearn (CDB) as Chowdhury et al. measured it at NERSC: three rounds of ten training steps "
        "and a validation",
    .codec = "raw",
    .format = "hdf5",
    .recipe = "climate",
    .defaults = {.batch = 1, .prefetch = 16, .shuffle = "buffer:100", .threads = 4, .steps = 29},
    .plan_files = plan_climate};

}  // namespace penstock
