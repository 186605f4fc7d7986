// The input side of the AlexNet mini-app: each sample is a JPEG or PNG file that becomes a normalised
// picture, by default of 224x224 pixels.
#include <cstdint>
#include <string>

#include "miniapps/pipeline/picture.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {
namespace {

constexpr OptionSpec kAlexnetOptions[] = {
    {.name = "image",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "224",
     .help = "width and height of the resized images",
     .at_least = 1},
    {.name = "crop",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "whole|random",
     .fallback = "whole",
     .help = "the whole image, or a random crop (8 to 100% of its area) that differs each epoch"},
    {.name = "mirror",
     .role = OptionRole::work,
     .type = OptionType::boolean,
     .fallback = "0",
     .help = "flip half of the images horizontally, at random"},
    {.name = "type",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "f32|f16|u8",
     .fallback = "f32",
     .help = "values in the batch: float32, float16, or uint8 pixels"},
    {.name = "axes",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "nhwc|nchw",
     .fallback = "nhwc",
     .help = "order of the axes: height, width, channel; or channel, height, width"}};
constexpr int64_t kAlexnetLargestImage = 16384;

Result<Transform> make_alexnet(const TrainRequest& request) {
  const Options& options = request.app_options;
  const int64_t size = options.integer("image");
  if (size > kAlexnetLargestImage)
    return make_error(Errc::invalid_argument, "alexnet's image=" + std::to_string(size) +
                                                  " is too large: at most " +
                                                  std::to_string(kAlexnetLargestImage));
  PictureSettings settings;
  settings.tensor.width = settings.tensor.height = uint32_t(size);
  PENSTOCK_ASSIGN(settings.tensor.type, parse_pixel_type(options.text("type")));
  PENSTOCK_ASSIGN(settings.tensor.axes, parse_axes(options.text("axes")));
  // Means and deviations of the channels over the ImageNet training set. Most networks that are trained on it
  // use these values.
  settings.tensor.mean = {0.485F, 0.456F, 0.406F};
  settings.tensor.deviation = {0.229F, 0.224F, 0.225F};
  settings.decode = request.decode;
  settings.resize = request.resize;
  settings.random_crop = options.text("crop") == "random";
  if (request.decode == DecodeMode::crop && options.given("crop") && !settings.random_crop)
    return make_error(Errc::invalid_argument, "--decode crop needs random crops: leave out --set crop=whole");
  settings.mirror = options.boolean("mirror");
  settings.seed = request.seed;
  return picture_transform(settings);
}

}  // namespace

extern const MiniAppInfo miniapp_alexnet;
const MiniAppInfo miniapp_alexnet{
    .name = "alexnet",
    .summary = "decodes JPEG and PNG images and resizes them to 224x224 in N threads, in batches for AlexNet",
    .options = kAlexnetOptions,
    .reproduces = "the AlexNet mini-app of Chien et al., PDSW-DISCS 2018: the effect of prefetching",
    .codec = "jpeg|png",
    .takes_pictures = true,
    .defaults = {.batch = 64, .prefetch = 1},
    .make = make_alexnet};

}  // namespace penstock
