#include "miniapps/pipeline/picture.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "datagen/codec/jpeg.hpp"
#include "datagen/codec/png.hpp"

namespace penstock {
namespace {

constexpr std::array<std::string_view, 2> kStages{"decode", "resize"};
constexpr size_t kPartDecode = kFirstOwnPart;
constexpr size_t kPartResize = kFirstOwnPart + 1;

// The largest factor by which a picture may be shrunk while it is decoded. After that, each side of `part`
// must still have at least 4/5 of the length that the result needs. So a usual picture of 500x375 is decoded
// as 250x188 for a result of 224x224. libjpeg-turbo also has factors such as 7/8 and 6/8, but they are slower
// than decoding every pixel.
unsigned largest_shrink(const PicturePart& part, const PictureTensor& tensor) {
  const auto large_enough = [](uint32_t side, unsigned shrink, uint32_t target) {
    return uint64_t{5} * (side / shrink) >= uint64_t{4} * target;
  };
  for (const unsigned shrink : {8U, 4U, 2U})
    if (large_enough(part.width, shrink, tensor.width) && large_enough(part.height, shrink, tensor.height))
      return shrink;
  return 1;
}

// A picture is shrunk while it is decoded. Returns where `part` of it is in the shrunk `image`, rounded to
// whole pixels.
PicturePart part_after_shrink(const PicturePart& part, unsigned shrink, const Image& image) {
  const auto shrunk = [shrink](uint32_t at) { return (at + shrink / 2) / shrink; };
  PicturePart result;
  result.left = std::min(shrunk(part.left), image.width - 1);
  result.top = std::min(shrunk(part.top), image.height - 1);
  result.width = std::clamp(shrunk(part.left + part.width), result.left + 1, image.width) - result.left;
  result.height = std::clamp(shrunk(part.top + part.height), result.top + 1, image.height) - result.top;
  return result;
}

constexpr int kCropDraws = 10;
constexpr double kLeastCropArea = 0.08;
constexpr double kNarrowestAspect = 3.0 / 4.0;
constexpr double kWidestAspect = 4.0 / 3.0;

uint32_t rounded(double length) {
  return uint32_t(std::lround(length));
}

// The n-th random number of the stream, as an integer from 0 to `most`.
uint32_t random_up_to(const RandomStream& random, uint64_t n, uint32_t most) {
  return uint32_t(random.below(n, uint64_t{most} + 1));
}

PicturePart middle_crop(uint32_t width, uint32_t height) {
  const double aspect = double(width) / height;
  PicturePart part{0, 0, width, height};
  if (aspect < kNarrowestAspect) part.height = std::clamp(rounded(width / kNarrowestAspect), 1U, height);
  if (aspect > kWidestAspect) part.width = std::clamp(rounded(height * kWidestAspect), 1U, width);
  part.left = (width - part.width) / 2;
  part.top = (height - part.height) / 2;
  return part;
}

class PictureSampleTransform final : public SampleTransform {
 public:
  explicit PictureSampleTransform(const PictureSettings& settings)
      : settings_(settings),
        resizer_(settings.resize, settings.tensor.width, settings.tensor.height),
        writer_(settings.tensor),
        line_(size_t{3} * settings.tensor.width + 1) {}

  Result<void> apply(const SampleKey& key, std::span<const std::byte> stored, std::span<std::byte> slot,
                     StageTimer& timer) override {
    const RandomStream random = augment_stream(settings_.seed, key);
    PENSTOCK_ASSIGN(const PicturePart wanted, decode(stored, random));
    timer.end_part(kPartDecode);
    const bool mirrored = settings_.mirror && random.substream(1).bits(0) % 2 == 1;
    resizer_.begin(image_, wanted, mirrored);
    for (uint32_t y = 0; y < settings_.tensor.height; ++y) {
      resizer_.line(y, line_);
      writer_.write(y, std::span(line_).first(line_.size() - 1), slot);
    }
    timer.end_part(kPartResize);
    return success();
  }
  PictureWarnings warnings() const override { return image_.warnings; }

 private:
  // Decodes a stored picture into image_. Returns the part of image_ that becomes the tensor.
  Result<PicturePart> decode(std::span<const std::byte> stored, const RandomStream& random) {
    PENSTOCK_ASSIGN(const bool png, is_png_not_jpeg(stored));
    if (png || settings_.decode == DecodeMode::full) {
      PENSTOCK_TRY(png ? decode_png(stored, image_) : jpeg_.decode(stored, image_));
      return choose_part(image_.width, image_.height, random);
    }
    PENSTOCK_ASSIGN(const JpegHeader header, jpeg_.read_header(stored));
    const PicturePart wanted_part = choose_part(header.width, header.height, random);
    if (settings_.decode == DecodeMode::crop) {
      PENSTOCK_TRY(jpeg_.decode_part(stored, wanted_part, image_));
      return PicturePart{0, 0, image_.width, image_.height};
    }
    const unsigned shrink = largest_shrink(wanted_part, settings_.tensor);
    PENSTOCK_TRY(jpeg_.decode(stored, image_, shrink));
    return part_after_shrink(wanted_part, shrink, image_);
  }

  PicturePart choose_part(uint32_t width, uint32_t height, const RandomStream& random) const {
    if (!settings_.random_crop) return {0, 0, width, height};
    return random_resized_crop(width, height, random);
  }

  const PictureSettings settings_;
  JpegDecoder jpeg_;
  Image image_;
  Resizer resizer_;
  LineWriter writer_;
  std::vector<float> line_;
};

}  // namespace

PicturePart random_resized_crop(uint32_t width, uint32_t height, const RandomStream& random) {
  const double whole_area = double(width) * height;
  const double log_narrowest = portable_log(kNarrowestAspect);
  const double log_widest = portable_log(kWidestAspect);
  uint64_t n = 0;
  for (int draw = 0; draw < kCropDraws; ++draw) {
    const double crop_area = whole_area * (kLeastCropArea + (1.0 - kLeastCropArea) * random.uniform(n++));
    const double aspect = portable_exp(log_narrowest + (log_widest - log_narrowest) * random.uniform(n++));
    const uint32_t part_width = rounded(std::sqrt(crop_area * aspect));
    const uint32_t part_height = rounded(std::sqrt(crop_area / aspect));
    if (part_width == 0 || part_height == 0 || part_width > width || part_height > height) continue;
    return {random_up_to(random, n, width - part_width), random_up_to(random, n + 1, height - part_height),
            part_width, part_height};
  }
  return middle_crop(width, height);
}

Result<DecodeMode> parse_decode(std::string_view name) {
  if (name == "full") return DecodeMode::full;
  if (name == "scaled") return DecodeMode::scaled;
  if (name == "crop") return DecodeMode::crop;
  return unknown_name("way to decode", name, {"full", "scaled", "crop"});
}

Transform picture_transform(const PictureSettings& settings) {
  PictureSettings resolved = settings;
  if (settings.decode == DecodeMode::crop) resolved.random_crop = true;
  return {.slot_bytes = resolved.tensor.bytes(),
          .layout = resolved.tensor.text(),
          .stages = kStages,
          .make = [resolved]() -> Result<std::unique_ptr<SampleTransform>> {
            return std::make_unique<PictureSampleTransform>(resolved);
          }};
}

}  // namespace penstock
