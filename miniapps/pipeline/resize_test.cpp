#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <utility>
#include <vector>

#include "io_backends/core/random.hpp"
#include "miniapps/pipeline/picture_tensor.hpp"

namespace penstock {
namespace {

using Sides = std::pair<uint32_t, uint32_t>;

Image noise(uint32_t width, uint32_t height) {
  Image image{width, height, std::vector<uint8_t>(size_t{3} * width * height)};
  const RandomStream random(width, height);
  for (size_t i = 0; i < image.pixels.size(); ++i) image.pixels[i] = uint8_t(random.bits(i));
  return image;
}

PicturePart whole(const Image& image) {
  return {0, 0, image.width, image.height};
}

double pixel(const Image& picture, size_t x, size_t y, size_t channel) {
  return picture.pixels[(y * picture.width + x) * 3 + channel];
}

// Bilinear interpolation by its definition: in double, one value at a time.
double bilinear(const Image& picture, Sides out, uint32_t x, uint32_t y, uint32_t channel) {
  const auto place = [](uint32_t target, uint32_t target_size, uint32_t size) {
    return std::clamp((target + 0.5) * size / target_size - 0.5, 0.0, size - 1.0);
  };
  const auto at = [&](double px, double py) {
    return pixel(picture, size_t(std::min(px, picture.width - 1.0)),
                 size_t(std::min(py, picture.height - 1.0)), channel);
  };
  const double sx = place(x, out.first, picture.width);
  const double sy = place(y, out.second, picture.height);
  const double fx = sx - std::floor(sx);
  const double fy = sy - std::floor(sy);
  const double top = at(sx, sy) * (1 - fx) + at(sx + 1, sy) * fx;
  const double bottom = at(sx, sy + 1) * (1 - fx) + at(sx + 1, sy + 1) * fx;
  return top * (1 - fy) + bottom * fy;
}

// Resizes like Pillow: first along the lines, then across them. Each pass computes in fixed point with 22
// fractional bits, and rounds to an integer from 0 to 255.
class AsPillow {
 public:
  AsPillow(const Image& picture, Sides out) : width_(out.first) {
    const std::vector<std::vector<Tap>> columns = taps(picture.width, out.first);
    std::vector<uint8_t> lines;
    for (size_t y = 0; y < picture.height; ++y)
      for (size_t x = 0; x < out.first; ++x)
        for (size_t channel = 0; channel < 3; ++channel)
          lines.push_back(level(columns[x], [&](size_t at) { return pixel(picture, at, y, channel); }));
    const std::vector<std::vector<Tap>> rows = taps(picture.height, out.second);
    for (size_t y = 0; y < out.second; ++y)
      for (size_t i = 0; i < size_t{3} * out.first; ++i)
        pixels_.push_back(level(rows[y], [&](size_t at) { return lines[at * 3 * out.first + i]; }));
  }

  double at(uint32_t x, uint32_t y, uint32_t channel) const {
    return pixels_[(size_t{y} * width_ + x) * 3 + channel];
  }

 private:
  struct Tap {
    size_t at = 0;
    int64_t weight = 0;
  };
  static constexpr int kBits = 22;

  static std::vector<std::vector<Tap>> taps(uint32_t source, uint32_t target) {
    std::vector<std::vector<Tap>> all(target);
    const double scale = double(source) / target;
    const double filter_scale = std::max(scale, 1.0);
    for (size_t i = 0; i < target; ++i) {
      const double centre = (double(i) + 0.5) * scale;
      const auto first = int64_t(std::max(0.0, std::floor(centre - filter_scale + 0.5)));
      const auto end = std::min<int64_t>(source, int64_t(centre + filter_scale + 0.5));
      std::vector<double> weights;
      double sum = 0;
      for (int64_t at = first; at < end; ++at) {
        weights.push_back(std::max(0.0, 1.0 - std::abs((double(at) - centre + 0.5) / filter_scale)));
        sum += weights.back();
      }
      for (size_t k = 0; k < weights.size(); ++k)
        all[i].push_back({size_t(first) + k, int64_t(std::floor(weights[k] / sum * (1 << kBits) + 0.5))});
    }
    return all;
  }

  template <class Level>
  static uint8_t level(const std::vector<Tap>& taps, const Level& of) {
    int64_t sum = int64_t{1} << (kBits - 1);
    for (const Tap& tap : taps) sum += int64_t(of(tap.at)) * tap.weight;
    return uint8_t(std::clamp<int64_t>(sum >> kBits, 0, 255));
  }

  size_t width_;
  std::vector<uint8_t> pixels_;
};

std::vector<float> resized(Resizer& resizer, const Image& image, const PicturePart& part, Sides out,
                           bool mirrored = false) {
  constexpr float kGuard = 12345.0F;
  const size_t line_floats = size_t{3} * out.first;
  std::vector<float> all;
  std::vector<float> line(line_floats + 2, kGuard);
  resizer.begin(image, part, mirrored);
  for (uint32_t y = 0; y < out.second; ++y) {
    resizer.line(y, std::span(line).first(line_floats + 1));
    EXPECT_EQ(line.back(), kGuard) << "wrote behind its line";
    all.insert(all.end(), line.begin(), line.end() - 2);
  }
  return all;
}

std::vector<float> resized(ResizeFilter filter, const Image& image, const PicturePart& part, Sides out,
                           bool mirrored = false) {
  Resizer resizer(filter, out.first, out.second);
  return resized(resizer, image, part, out, mirrored);
}

template <class Reference>
double worst_difference(const std::vector<float>& got, Sides out, const Reference& reference) {
  double worst = 0;
  for (uint32_t y = 0; y < out.second; ++y)
    for (uint32_t x = 0; x < out.first; ++x)
      for (uint32_t c = 0; c < 3; ++c)
        worst =
            std::max(worst, std::abs(double{got[(size_t{y} * out.first + x) * 3 + c]} - reference(x, y, c)));
  return worst;
}

class Resizers : public testing::TestWithParam<std::pair<Sides, Sides>> {
 protected:
  const Image image_ = noise(GetParam().first.first, GetParam().first.second);
  const Sides out_ = GetParam().second;
};

TEST_P(Resizers, BilinearMatchesItsDefinition) {
  EXPECT_LT(worst_difference(resized(ResizeFilter::bilinear, image_, whole(image_), out_), out_,
                             [&](uint32_t x, uint32_t y, uint32_t channel) {
                               return bilinear(image_, out_, x, y, channel);
                             }),
            2e-3);
}

TEST_P(Resizers, AntialiasIsWithinOneLevelOfPillow) {
  const AsPillow pillow(image_, out_);
  EXPECT_LE(
      worst_difference(resized(ResizeFilter::antialias, image_, whole(image_), out_), out_,
                       [&](uint32_t x, uint32_t y, uint32_t channel) { return pillow.at(x, y, channel); }),
      1.0);
}

TEST_P(Resizers, MirroredIsTheReversedResult) {
  for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::antialias}) {
    const std::vector<float> plain = resized(filter, image_, whole(image_), out_);
    EXPECT_EQ(worst_difference(resized(filter, image_, whole(image_), out_, true), out_,
                               [&](uint32_t x, uint32_t y, uint32_t channel) {
                                 const size_t other = size_t{out_.first} - 1 - x;
                                 return plain[(size_t{y} * out_.first + other) * 3 + channel];
                               }),
              0);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Photographs, Resizers,
    testing::Values(std::pair{Sides{500, 375}, Sides{224, 224}}, std::pair{Sides{375, 500}, Sides{224, 224}},
                    std::pair{Sides{224, 224}, Sides{224, 224}}, std::pair{Sides{223, 225}, Sides{224, 224}},
                    std::pair{Sides{100, 70}, Sides{224, 224}}, std::pair{Sides{448, 448}, Sides{224, 224}}));

INSTANTIATE_TEST_SUITE_P(
    TheSmallestAndTheOddest, Resizers,
    testing::Values(std::pair{Sides{1, 1}, Sides{224, 224}}, std::pair{Sides{1, 2}, Sides{22, 24}},
                    std::pair{Sides{2, 1}, Sides{22, 24}}, std::pair{Sides{2, 2}, Sides{22, 24}},
                    std::pair{Sides{3, 1}, Sides{22, 24}}, std::pair{Sides{1, 5000}, Sides{22, 24}},
                    std::pair{Sides{20000, 1}, Sides{22, 24}}, std::pair{Sides{20000, 2}, Sides{22, 24}},
                    std::pair{Sides{500, 375}, Sides{1, 1}}, std::pair{Sides{1, 1}, Sides{1, 1}},
                    std::pair{Sides{17, 9}, Sides{3, 2}}));

TEST(Resizer, TakesAPartAsAPictureOfItsOwn) {
  const Image image = noise(90, 60);
  const PicturePart part{11, 7, 50, 40};
  Image alone{part.width, part.height, {}};
  for (size_t y = 0; y < part.height; ++y)
    for (size_t i = 0; i < size_t{3} * part.width; ++i)
      alone.pixels.push_back(image.pixels[(part.top + y) * 270 + size_t{3} * part.left + i]);
  for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::antialias})
    EXPECT_EQ(resized(filter, image, part, {32, 32}), resized(filter, alone, whole(alone), {32, 32}));
}

TEST(Resizer, ReusesItsTablesCorrectlyBetweenPictures) {
  const Image one = noise(40, 30);
  const Image other = noise(7, 90);
  for (const ResizeFilter filter : {ResizeFilter::bilinear, ResizeFilter::antialias}) {
    Resizer resizer(filter, 16, 16);
    const std::vector<float> first = resized(resizer, one, whole(one), {16, 16});
    EXPECT_NE(resized(resizer, other, whole(other), {16, 16}), first);
    EXPECT_EQ(resized(resizer, one, whole(one), {16, 16}), first);
  }
}

TEST(Resizer, UnknownFilterErrorListsTheFilters) {
  EXPECT_EQ(parse_resize("antialias").value(), ResizeFilter::antialias);
  ASSERT_FALSE(parse_resize("bicubic").ok());
  EXPECT_NE(parse_resize("bicubic").error().what.find("bilinear"), std::string::npos);
}

}  // namespace
}  // namespace penstock
