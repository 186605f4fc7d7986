// Loads small pictures once, holds them in memory and writes a checkpoint after every epoch: a training that
// writes more than it reads.
#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

constexpr size_t kSide = 32;
constexpr size_t kPixels = kSide * kSide;
constexpr size_t kChannels = 3;
constexpr std::array<std::string_view, 1> kCifarStages{"decode"};

constexpr OptionSpec kCifarOptions[] = {{.name = "type",
                                         .role = OptionRole::work,
                                         .type = OptionType::choice,
                                         .value = "f32|u8",
                                         .fallback = "f32",
                                         .help = "values in the batch: float32 from 0 to 1, or uint8"},
                                        kModelOption};

// Converts a picture from three planes of bytes, one for each colour, to pixels.
class PictureSampleTransform final : public SampleTransform {
 public:
  explicit PictureSampleTransform(bool as_octets) : as_octets_(as_octets) {}

  Result<void> apply(const SampleKey&, std::span<const std::byte> stored, std::span<std::byte> slot,
                     StageTimer& timer) override {
    if (stored.size() != kChannels * kPixels)
      return make_error(Errc::corrupt,
                        "it has " + std::to_string(stored.size()) + " bytes; a picture of CIFAR-10 has 3072");
    if (as_octets_)
      fill(stored, slot.data(), [](std::byte value) { return value; });
    else
      fill(stored, reinterpret_cast<float*>(slot.data()),
           [](std::byte value) { return float(std::to_integer<unsigned>(value)) * (1.0F / 255.0F); });
    timer.end_part(kFirstOwnPart);
    return success();
  }

 private:
  template <class Number, class Convert>
  static void fill(std::span<const std::byte> stored, Number* out, Convert convert) {
    for (size_t i = 0; i < kPixels; ++i)
      for (size_t c = 0; c < kChannels; ++c) out[i * kChannels + c] = convert(stored[c * kPixels + i]);
  }

  const bool as_octets_;
};

Result<Transform> make_cifar(const TrainRequest& request) {
  const bool as_octets = request.app_options.text("type") == "u8";
  return Transform{.slot_bytes = kChannels * kPixels * (as_octets ? 1 : sizeof(float)),
                   .layout = as_octets ? "u8 NHWC 32x32x3" : "f32 NHWC 32x32x3",
                   .stages = kCifarStages,
                   .make = [as_octets]() -> Result<std::unique_ptr<SampleTransform>> {
                     return std::make_unique<PictureSampleTransform>(as_octets);
                   }};
}

}  // namespace

extern const MiniAppInfo miniapp_cifar;
const MiniAppInfo miniapp_cifar{
    .name = "cifar",
    .summary = "reads 32x32 images once into memory, and writes a checkpoint after every epoch",
    .options = kCifarOptions,
    .reproduces = "CIFAR-10 as Layton profiled it for ADMIN 65/2021: few reads, mostly writes",
    .codec = "raw",
    .recipe = "cifar10",
    .sample_bytes = kChannels * kPixels,
    .defaults = {.batch = 128, .prefetch = 0, .shuffle = "global", .epochs = 20},
    .make = make_cifar,
    .in_memory = true,
    .writes_checkpoints = true};

}  // namespace penstock
