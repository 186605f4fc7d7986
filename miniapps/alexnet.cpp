// The input side of the AlexNet mini-app: each sample is a JPEG file that becomes a normalised picture of
// 224x224.
#include <array>
#include <memory>
#include <span>
#include <string>
#include <utility>

#include "datagen/codec/jpeg.hpp"
#include "miniapps/miniapp.hpp"
#include "miniapps/pipeline/resize.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kOptions[] = {{.name = "image",
                                    .type = OptionType::integer,
                                    .value = "N",
                                    .fallback = "224",
                                    .help = "width and height that pictures are resized to",
                                    .at_least = 1}};
constexpr std::int64_t kLargestImage = 16384;

constexpr std::array<std::string_view, 2> kStages{"decode", "resize"};
constexpr std::size_t kLapDecode = kLapFirstOwn;
constexpr std::size_t kLapResize = kLapFirstOwn + 1;

// Means and standard deviations of the ImageNet training set, as networks trained on it commonly take them.
constexpr Normalisation kImageNet{{0.485F, 0.456F, 0.406F}, {0.229F, 0.224F, 0.225F}};

class DecodeAndResize final : public SampleTransform {
 public:
  explicit DecodeAndResize(std::uint32_t size) : resizer_(size, size, kImageNet) {}

  Result<void> apply(std::span<const std::byte> stored, std::span<std::byte> slot, LapClock& laps) override {
    PENSTOCK_TRY(decoder_.decode(stored, image_));
    laps.lap(kLapDecode);
    // The slot lies in a batch whose memory and slot size are multiples of a float's alignment.
    resizer_.run(image_, {reinterpret_cast<float*>(slot.data()), slot.size() / sizeof(float)});
    laps.lap(kLapResize);
    return {};
  }

 private:
  JpegDecoder decoder_;
  Image image_;
  BilinearResizer resizer_;
};

class AlexNet final : public Treatment {
 public:
  explicit AlexNet(std::uint32_t size)
      : size_(size), layout_("f32 NHWC " + std::to_string(size) + "x" + std::to_string(size) + "x3") {}

  std::size_t slot_bytes() const override { return std::size_t{3} * sizeof(float) * size_ * size_; }
  std::string_view layout() const override { return layout_; }
  std::span<const std::string_view> stages() const override { return kStages; }
  Result<std::unique_ptr<SampleTransform>> transform() const override {
    return std::unique_ptr<SampleTransform>(std::make_unique<DecodeAndResize>(size_));
  }

 private:
  const std::uint32_t size_;
  const std::string layout_;
};

Result<std::unique_ptr<Treatment>> make(const Options& options) {
  const std::int64_t size = options.integer("image");
  if (size > kLargestImage)
    return make_error(Errc::invalid_argument, "alexnet's image=" + std::to_string(size) +
                                                  " is too large: at most " + std::to_string(kLargestImage));
  return std::unique_ptr<Treatment>(std::make_unique<AlexNet>(static_cast<std::uint32_t>(size)));
}

}  // namespace

extern const MiniAppInfo miniapp_alexnet;
const MiniAppInfo miniapp_alexnet{
    .name = "alexnet",
    .summary = "JPEG files, decoded and resized to 224x224 in N threads, in batches for AlexNet",
    .options = kOptions,
    .reproduces = "the AlexNet mini-app of Chien et al., PDSW-DISCS 2018: what prefetching hides",
    .codec = "jpeg",
    .defaults = {.batch = 64, .prefetch = 1},
    .make = &make};

}  // namespace penstock
