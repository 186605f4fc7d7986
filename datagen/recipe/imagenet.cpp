// Recipe: JPEG pictures in class folders with the sizes of ImageNet. docs/recipes.md says where the
// figures come from and in what the pictures are like photographs.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>
#include <memory>
#include <mutex>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "datagen/codec/jpeg.hpp"
#include "datagen/recipe/picture.hpp"
#include "datagen/recipe/recipe.hpp"
#include "datagen/recipe/scenery.hpp"
#include "io_backends/base/random.hpp"

namespace penstock {

extern const RecipeInfo recipe_imagenet;

namespace {

constexpr double kMedian = 112000;           // Chien et al. 2018, micro-benchmark: 112 KB
constexpr std::uint64_t kSamples = 1281167;  // of the ILSVRC 2012 training set
constexpr double kUsualPixels = 500 * 375;   // at the median size
constexpr std::uint64_t kLeastMedian = 4000;
constexpr std::uint64_t kMostMedian = 64'000'000;
constexpr double kLeastBytes = 1500;  // the headers alone are 623
constexpr double kMostBytes = 256e6;
constexpr double kHeaderBytes = 625;

constexpr OptionSpec kOptions[] = {
    {.name = "median",
     .type = OptionType::size,
     .value = "SIZE",
     .fallback = "112KB",
     .help = "median size of a picture, 4 kB to 64 MB",
     .at_least = kLeastMedian},
    {.name = "sigma",
     .type = OptionType::real,
     .value = "X",
     .fallback = "0.4",
     .help = "spread of the sizes: standard deviation of their logarithm, 0 to 1.5"},
    {.name = "classes",
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1000",
     .help = "classes, one folder each",
     .at_least = 1},
};

struct Shape {
  std::uint32_t width;
  std::uint32_t height;
};

struct Sizes {
  double median;
  double sigma;
};

// Log-normal, drawn by strata: of each kStrata samples in a row, one falls into each kStrata-th of the
// distribution. So a data set of a few hundred pictures already has its percentiles.
double target_bytes(const Sizes& sizes, const RandomStream& samples, std::uint64_t index) {
  constexpr std::uint64_t kStrata = 256;
  const Permutation order(kStrata, samples.bits(index / kStrata));
  const double share = samples.substream(index).uniform(0) * 0.998 + 0.001;  // never on a border
  const double p = (static_cast<double>(order.at(index % kStrata)) + share) / kStrata;
  return std::clamp(sizes.median * portable_exp(sizes.sigma * inverse_normal(p)), kLeastBytes, kMostBytes);
}

// ---- Bytes for a quantizer -----------------------------------------------------------------------------
// log(bytes) of a typical picture of ours against the quantizer's percentage, measured (docs/recipes.md).
// Pictures differ in height far more than in slope, so one look at a picture places the curve.
struct CurvePoint {
  double percent;
  double log_bytes;
};
constexpr std::array<CurvePoint, 14> kCurve{{{2, 0.0},
                                             {3, -0.105},
                                             {4, -0.167},
                                             {6, -0.280},
                                             {8, -0.388},
                                             {12, -0.585},
                                             {16, -0.750},
                                             {24, -0.955},
                                             {32, -1.120},
                                             {48, -1.385},
                                             {64, -1.565},
                                             {96, -1.820},
                                             {128, -2.005},
                                             {192, -2.270}}};
constexpr int kFinest = 2;
constexpr int kCoarsest = 192;
constexpr int kFirstLook = 8;

double curve_at(double percent) {
  std::size_t i = 1;
  while (i + 1 < kCurve.size() && kCurve[i].percent < percent) ++i;
  const CurvePoint& a = kCurve[i - 1];
  const CurvePoint& b = kCurve[i];
  return a.log_bytes + (b.log_bytes - a.log_bytes) * (percent - a.percent) / (b.percent - a.percent);
}

// The percentage whose bytes come nearest to `wanted`, when `percent` gave `got`.
int quantizer_for(double wanted, int percent, double got) {
  const double goal = curve_at(percent) + portable_log(wanted / got);
  int best = kFinest;
  double best_distance = HUGE_VAL;
  for (int candidate = kFinest; candidate <= kCoarsest; ++candidate) {
    const double distance = std::abs(curve_at(candidate) - goal);
    if (distance >= best_distance) break;  // the curve falls all the way
    best = candidate;
    best_distance = distance;
  }
  return best;
}

// ---- Shapes --------------------------------------------------------------------------------------------
// Width and height as most of ImageNet has them: the longer side at 500 (what Flickr called "medium"), four
// to three first, then three to two, a fifth of them upright.
Shape draw_proportions(Draws& draws) {
  const int kind = draws.between(0, 99);
  std::uint32_t shorter = 375;
  if (kind >= 58 && kind < 84) shorter = 333;
  if (kind >= 84 && kind < 90) shorter = 500;
  if (kind >= 90) shorter = static_cast<std::uint32_t>(draws.between(280, 490));
  return draws.percent(22) ? Shape{shorter, 500} : Shape{500, shorter};
}

std::uint32_t scaled(std::uint32_t side, double factor) {
  return static_cast<std::uint32_t>(std::clamp(std::floor(side * factor + 0.5), 16.0, 65500.0));
}

Shape resize(Shape shape, double pixels) {
  const double factor = std::sqrt(pixels / (static_cast<double>(shape.width) * shape.height));
  return {scaled(shape.width, factor), scaled(shape.height, factor)};
}

// The usual shape unless that would take too many or too few bytes for a pixel: then larger or smaller.
Shape draw_shape(Draws& draws, const Sizes& sizes, double bytes) {
  Shape shape = draw_proportions(draws);
  // Data sets of smaller files have smaller pictures, and fewer bytes for a pixel.
  const double usual_pixels = kUsualPixels * portable_exp(0.6 * portable_log(sizes.median / kMedian));
  if (sizes.median < 0.99 * kMedian || sizes.median > 1.01 * kMedian)
    shape = resize(shape, static_cast<double>(shape.width) * shape.height * usual_pixels / kUsualPixels);
  const double usual = std::clamp(sizes.median / usual_pixels, 0.12, 0.60);
  const double density = bytes / (static_cast<double>(shape.width) * shape.height);
  const double most = usual * (1.10 + 0.20 * draws.uniform());
  const double least = usual * (0.55 + 0.25 * draws.uniform());
  if (density > most) return resize(shape, bytes / most);
  if (density < least) return resize(shape, bytes / least);
  return shape;
}

// ---- The maker -----------------------------------------------------------------------------------------
class PictureMaker final : public SampleMaker {
 public:
  PictureMaker(const Scenery& scenery, RandomStream samples, Sizes sizes)
      : samples_(samples), sizes_(sizes), painter_(scenery) {}

  Result<std::span<const FieldBytes>> make(std::uint64_t index) override {
    PENSTOCK_ASSIGN(jpeg_, paint(index));
    made_ = {.pieces = {&jpeg_, 1}, .bytes = jpeg_.size()};
    return std::span<const FieldBytes>(&made_, 1);
  }

 private:
  static constexpr double kCloseEnough = 0.04;

  Result<std::span<const std::byte>> paint(std::uint64_t index) {
    const RandomStream sample = samples_.substream(index);
    const double wanted = target_bytes(sizes_, samples_, index);
    Draws draws(sample.substream(1));
    Shape shape = draw_shape(draws, sizes_, wanted);
    painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
    PENSTOCK_ASSIGN(double look, first_look());
    // A smooth picture cannot fill its bytes at any quality worth having: it gets more pixels instead.
    const double finest = look * portable_exp(curve_at(kFinest + 1) - curve_at(kFirstLook));
    if (wanted > finest) {
      shape = resize(shape, static_cast<double>(shape.width) * shape.height * 1.15 * wanted / finest);
      painter_.paint(sample.substream(2), shape.width, shape.height, picture_);
      PENSTOCK_ASSIGN(look, first_look());
    }
    return encode(wanted, look);
  }

  // The bytes at kFirstLook, from a quarter of the picture: every fourth row of coding units.
  Result<double> first_look() {
    constexpr std::size_t kEvery = 4;
    const std::size_t units = picture_.padded_height() / 16;
    const std::size_t looked_at = (units + kEvery - 1) / kEvery;
    look_.reshape(picture_.width, static_cast<std::uint32_t>(looked_at * 16));
    for (std::size_t i = 0; i < looked_at; ++i) {
      const std::size_t unit = std::min(i * kEvery + kEvery / 2, units - 1);
      for (std::size_t plane = 0; plane < 3; ++plane) {
        const std::size_t bytes = picture_.stride() * (plane == 0 ? 16 : 4);
        std::memcpy(look_.planes[plane].data() + i * bytes, picture_.planes[plane].data() + unit * bytes,
                    bytes);
      }
    }
    PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(look_, kFirstLook));
    return kHeaderBytes + (static_cast<double>(jpeg.size()) - kHeaderBytes) * static_cast<double>(units) /
                              static_cast<double>(looked_at);
  }

  Result<std::span<const std::byte>> encode(double wanted, double look) {
    const int percent = quantizer_for(wanted - kHeaderBytes, kFirstLook, look - kHeaderBytes);
    PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(picture_, percent));
    const double got = static_cast<double>(jpeg.size());
    if (std::abs(got / wanted - 1.0) <= kCloseEnough) return jpeg;
    const int better = quantizer_for(wanted - kHeaderBytes, percent, got - kHeaderBytes);
    if (better == percent) return jpeg;
    return encoder_.encode(picture_, better);
  }

  const RandomStream samples_;
  const Sizes sizes_;
  PicturePainter painter_;
  JpegEncoder encoder_;
  YccImage picture_;
  YccImage look_;
  std::span<const std::byte> jpeg_;
  FieldBytes made_;
};

class ImageNet final : public Recipe {
 public:
  ImageNet(const RecipeRequest& request, Sizes sizes, std::uint64_t classes)
      : samples_(request.samples == 0 ? kSamples : request.samples),
        seed_(request.seed),
        sizes_(sizes),
        classes_(classes),
        stream_(request.seed, "imagenet") {}

  std::uint64_t samples() const override { return samples_; }

  void plan(std::uint64_t index, SamplePlan& out) const override {
    const std::uint64_t label = index % classes_;
    out.key.clear();
    fmt::format_to(std::back_inserter(out.key), "n{0:08}/n{0:08}_{1}", label, index / classes_);
    out.label = static_cast<std::uint32_t>(label);
    out.bytes_expected = static_cast<std::uint64_t>(target_bytes(sizes_, stream_, index));
  }

  std::vector<std::string> label_names() const override {
    std::vector<std::string> names;
    names.reserve(classes_);
    for (std::uint64_t label = 0; label < classes_; ++label) names.push_back(fmt::format("n{:08}", label));
    return names;
  }

  std::span<const Field> fields() const override {
    static const Field image{.name = "image", .codec = "jpeg", .extension = ".JPEG", .varies = true};
    return {&image, 1};
  }

  Result<std::unique_ptr<SampleMaker>> maker() const override {
    try {
      std::call_once(scenery_once_, [this] { scenery_.emplace(seed_); });
      return std::make_unique<PictureMaker>(*scenery_, stream_, sizes_);
    } catch (const std::bad_alloc&) {
      return make_error(Errc::exhausted, "no memory for the canvases of recipe 'imagenet' (about 20 MiB)");
    }
  }

 private:
  const std::uint64_t samples_;
  const std::uint64_t seed_;
  const Sizes sizes_;
  const std::uint64_t classes_;
  const RandomStream stream_;
  mutable std::once_flag scenery_once_;
  mutable std::optional<Scenery> scenery_;  // made when the first maker needs it: plans go without
};

Result<std::unique_ptr<Recipe>> make_imagenet(const RecipeRequest& request, const Options& options) {
  const std::uint64_t median = options.size("median");
  const double sigma = options.real("sigma");
  const auto classes = static_cast<std::uint64_t>(options.integer("classes"));
  if (median > kMostMedian)
    return make_error(Errc::invalid_argument, fmt::format("median={}: from 4 kB to 64 MB", median));
  if (!(sigma >= 0.0 && sigma <= 1.5))
    return make_error(Errc::invalid_argument, fmt::format("sigma={}: from 0 to 1.5", sigma));
  if (classes > 1'000'000)
    return make_error(Errc::invalid_argument, fmt::format("classes={}: at most 1000000", classes));
  return std::make_unique<ImageNet>(request, Sizes{static_cast<double>(median), sigma}, classes);
}

}  // namespace

const RecipeInfo recipe_imagenet{
    .name = "imagenet",
    .summary = "JPEG photographs' look-alikes in 1000 class folders",
    .options = kOptions,
    .source =
        "ILSVRC 2012 as in Chien et al., Characterizing Deep-Learning I/O Workloads in TensorFlow (2018)",
    .full_samples = kSamples,
    .sizes = "log-normal, median 112 KB, sigma 0.40",
    .format = "files",
    .format_settings = {},
    .mean_sample_bytes = 121328,  // kMedian * exp(0.40^2 / 2)
    .make = make_imagenet,
};

}  // namespace penstock
