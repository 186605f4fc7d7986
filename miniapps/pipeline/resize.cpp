#include "miniapps/pipeline/resize.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstring>

#include "io_backends/core/options.hpp"

namespace penstock {
namespace {

using Lanes = float __attribute__((vector_size(16)));  // GCC and clang turn it into what the machine has

// Loops over whole lines: nearly all of the work. Compiled for wider vectors as well, where the loader can
// choose.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && \
    !defined(PENSTOCK_ADDRESS_SANITIZER) && !defined(PENSTOCK_THREAD_SANITIZER)
#define PENSTOCK_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define PENSTOCK_WIDE
#endif

Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

PENSTOCK_WIDE void blend_lines(const std::uint8_t* __restrict upper, const std::uint8_t* __restrict lower,
                               float towards, std::size_t count, float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = static_cast<float>(static_cast<int>(upper[i]));
    const auto b = static_cast<float>(static_cast<int>(lower[i]));
    out[i] = a + (b - a) * towards;
  }
}

float as_float(std::uint8_t pixel) {
  return static_cast<float>(static_cast<int>(pixel));
}

// out[i] = sum over t of weights[t] * source[t * stride + i]: up to four lines at a time, as they mostly are
// three to five.
PENSTOCK_WIDE void add_up_lines(const std::uint8_t* __restrict source, std::size_t stride,
                                std::span<const float> weights, std::size_t count, float* __restrict out) {
  std::fill_n(out, count, 0.0F);
  for (std::size_t t = 0; t < weights.size(); t += 4) {
    const std::uint8_t* const at = source + t * stride;
    const float* const w = weights.data() + t;
    switch (weights.size() - t) {
      case 1:
        for (std::size_t i = 0; i < count; ++i) out[i] += as_float(at[i]) * w[0];
        break;
      case 2:
        for (std::size_t i = 0; i < count; ++i)
          out[i] += as_float(at[i]) * w[0] + as_float(at[stride + i]) * w[1];
        break;
      case 3:
        for (std::size_t i = 0; i < count; ++i)
          out[i] +=
              as_float(at[i]) * w[0] + as_float(at[stride + i]) * w[1] + as_float(at[2 * stride + i]) * w[2];
        break;
      default:
        for (std::size_t i = 0; i < count; ++i)
          out[i] += as_float(at[i]) * w[0] + as_float(at[stride + i]) * w[1] +
                    as_float(at[2 * stride + i]) * w[2] + as_float(at[3 * stride + i]) * w[3];
    }
  }
}

// out[x] = line[first[x]] to line[first[x] + step], so far towards it: three floats each, of which four are
// read and written. The fourth is overwritten by the next pixel, or is the one more that `out` has.
PENSTOCK_WIDE void blend_pixels(const float* __restrict line, const std::uint32_t* __restrict first,
                                std::uint32_t step, const float* __restrict towards, std::uint32_t width,
                                float* __restrict out) {
  for (std::uint32_t x = 0; x < width; ++x) {
    const Lanes left = load(line + first[x]);
    const Lanes right = load(line + first[x] + step);
    const Lanes pixel = left + (right - left) * towards[x];
    std::memcpy(out + std::size_t{3} * x, &pixel, sizeof pixel);
  }
}

template <std::uint32_t kTaps>
__attribute__((always_inline)) inline void add_up_counted(const float* __restrict line,
                                                          const std::uint32_t* __restrict first,
                                                          const float* __restrict weights,
                                                          std::uint32_t width, float* __restrict out) {
  for (std::uint32_t x = 0; x < width; ++x, weights += kTaps) {
    const float* const at = line + first[x];
    Lanes sum = load(at) * weights[0];
    for (std::uint32_t i = 1; i < kTaps; ++i) sum += load(at + std::size_t{3} * i) * weights[i];
    std::memcpy(out + std::size_t{3} * x, &sum, sizeof sum);
  }
}

// out[x] = sum over i < taps of weights[x * taps + i] * line[first[x] + 3 i], pixels as in blend_pixels().
PENSTOCK_WIDE void add_up_pixels(const float* __restrict line, const std::uint32_t* __restrict first,
                                 std::uint32_t taps, const float* __restrict weights, std::uint32_t width,
                                 float* __restrict out) {
  switch (taps) {  // pictures mostly become half as large or less
    case 3:
      return add_up_counted<3>(line, first, weights, width, out);
    case 4:
      return add_up_counted<4>(line, first, weights, width, out);
    case 5:
      return add_up_counted<5>(line, first, weights, width, out);
    case 6:
      return add_up_counted<6>(line, first, weights, width, out);
    case 7:
      return add_up_counted<7>(line, first, weights, width, out);
    default:
      break;
  }
  for (std::uint32_t x = 0; x < width; ++x, weights += taps) {
    const float* const at = line + first[x];
    Lanes sum = load(at) * weights[0];
    for (std::uint32_t i = 1; i < taps; ++i) sum += load(at + std::size_t{3} * i) * weights[i];
    std::memcpy(out + std::size_t{3} * x, &sum, sizeof sum);
  }
}

// What all filters have in common: first lines are blended into one, then that one's pixels.
class LineResizer : public Resizer {
 protected:
  LineResizer(std::uint32_t width, std::uint32_t height) : width_(width), height_(height) {}

  void show(const PictureView& picture) {
    picture_ = picture;
    line_.resize(std::max(line_.size(), line_floats() + 1));  // four are read where three are meant
  }
  std::size_t line_floats() const { return std::size_t{3} * picture_.width; }
  const std::uint8_t* source_line(std::uint32_t y) const { return picture_.pixels + y * picture_.stride; }

  const std::uint32_t width_;
  const std::uint32_t height_;
  PictureView picture_;
  std::vector<float> line_;  // what one line of the result is made of, all of its pixels
};

class Bilinear final : public LineResizer {
 public:
  Bilinear(std::uint32_t width, std::uint32_t height) : LineResizer(width, height) {}

  void begin(const PictureView& picture, bool mirrored) override {
    show(picture);
    columns_ = &columns_of_[mirrored ? 1 : 0];
    columns_->prepare(picture.width, width_, 3, mirrored);
    rows_.prepare(picture.height, height_, 1, false);
  }

  void line(std::uint32_t y, std::span<float> out) override {
    const std::uint8_t* const upper = source_line(rows_.first[y]);
    blend_lines(upper, upper + rows_.step * picture_.stride, rows_.towards[y], line_floats(), line_.data());
    blend_pixels(line_.data(), columns_->first.data(), columns_->step, columns_->towards.data(), width_,
                 out.data());
  }

 private:
  // Where the two neighbours of each target position are, and how far it is towards the second.
  struct Axis {
    std::uint32_t source = 0;
    std::uint32_t step = 0;  // from the first neighbour to the second: 0 when the source is one wide
    std::vector<std::uint32_t> first;
    std::vector<float> towards;
    void prepare(std::uint32_t source_size, std::uint32_t target_size, std::uint32_t unit, bool mirrored);
  };

  std::array<Axis, 2> columns_of_;  // as they are, and mirrored
  Axis* columns_ = nullptr;
  Axis rows_;
};

void Bilinear::Axis::prepare(std::uint32_t source_size, std::uint32_t target_size, std::uint32_t unit,
                             bool mirrored) {
  if (source_size == source) return;
  source = source_size;
  step = source_size > 1 ? unit : 0;
  first.resize(target_size);
  towards.resize(target_size);
  const double ratio = static_cast<double>(source_size) / target_size;
  const std::uint32_t last_first = source_size > 1 ? source_size - 2 : 0;
  for (std::uint32_t i = 0; i < target_size; ++i) {
    const double at = std::clamp((i + 0.5) * ratio - 0.5, 0.0, static_cast<double>(source_size - 1));
    const std::uint32_t neighbour = std::min(static_cast<std::uint32_t>(at), last_first);
    const std::uint32_t place = mirrored ? target_size - 1 - i : i;
    first[place] = neighbour * unit;
    towards[place] = static_cast<float>(at - neighbour);
  }
}

class Antialias final : public LineResizer {
 public:
  Antialias(std::uint32_t width, std::uint32_t height) : LineResizer(width, height) {}

  void begin(const PictureView& picture, bool mirrored) override {
    show(picture);
    columns_ = &columns_of_[mirrored ? 1 : 0];
    columns_->prepare(picture.width, width_, 3, mirrored);
    rows_.prepare(picture.height, height_, 1, false);
  }

  void line(std::uint32_t y, std::span<float> out) override {
    add_up_lines(source_line(rows_.first[y]), picture_.stride,
                 std::span(rows_.weights).subspan(std::size_t{y} * rows_.taps, rows_.taps), line_floats(),
                 line_.data());
    add_up_pixels(line_.data(), columns_->first.data(), columns_->taps, columns_->weights.data(), width_,
                  out.data());
  }

 private:
  // Which source positions each target position is made of, as many for all, and their weights, which add up
  // to 1.
  struct Axis {
    std::uint32_t source = 0;
    std::uint32_t taps = 0;
    std::vector<std::uint32_t> first;
    std::vector<float> weights;  // taps of each target position
    void prepare(std::uint32_t source_size, std::uint32_t target_size, std::uint32_t unit, bool mirrored);
  };

  std::array<Axis, 2> columns_of_;  // as they are, and mirrored
  Axis* columns_ = nullptr;
  Axis rows_;
};

// Pillow's precompute_coeffs (its Resample.c) has the same support, centres and bounds.
struct Support {
  std::uint32_t first = 0;
  std::uint32_t end = 0;
};
Support support_of(double centre, double reach, std::uint32_t source_size) {
  return {static_cast<std::uint32_t>(std::max(std::lround(centre - reach), 0L)),
          std::min(static_cast<std::uint32_t>(std::lround(centre + reach)), source_size)};
}

void Antialias::Axis::prepare(std::uint32_t source_size, std::uint32_t target_size, std::uint32_t unit,
                              bool mirrored) {
  if (source_size == source) return;
  source = source_size;
  const double ratio = static_cast<double>(source_size) / target_size;
  const double reach = std::max(ratio, 1.0);  // of the triangle, to each side
  const auto centre_of = [ratio](std::uint32_t i) { return (i + 0.5) * ratio; };
  taps = 1;
  for (std::uint32_t i = 0; i < target_size; ++i) {
    const Support support = support_of(centre_of(i), reach, source_size);
    taps = std::max(taps, support.end - support.first);
  }
  first.resize(target_size);
  weights.assign(std::size_t{taps} * target_size, 0.0F);
  for (std::uint32_t i = 0; i < target_size; ++i) {
    const Support support = support_of(centre_of(i), reach, source_size);
    const auto weight = [&](std::uint32_t at) {
      return std::max(0.0, 1.0 - std::abs((at + 0.5 - centre_of(i)) / reach));
    };
    double sum = 0;
    for (std::uint32_t at = support.first; at < support.end; ++at) sum += weight(at);
    const std::uint32_t place = mirrored ? target_size - 1 - i : i;
    const std::uint32_t from = std::min(support.first, source_size - taps);
    first[place] = from * unit;
    float* const to = weights.data() + std::size_t{place} * taps;
    for (std::uint32_t at = support.first; at < support.end; ++at)
      to[at - from] = static_cast<float>(weight(at) / sum);
  }
}

}  // namespace

Result<ResizeFilter> parse_resize(std::string_view name) {
  if (name == "bilinear") return ResizeFilter::bilinear;
  if (name == "antialias") return ResizeFilter::antialias;
  return unknown_name("way to resize", name, {"bilinear", "antialias"});
}

PictureView view_of(const Image& image) {
  return view_of(image, {0, 0, image.width, image.height});
}

PictureView view_of(const Image& image, const PicturePart& part) {
  const std::size_t stride = std::size_t{3} * image.width;
  return {part.width, part.height, image.pixels.data() + part.top * stride + std::size_t{3} * part.left,
          stride};
}

std::unique_ptr<Resizer> make_resizer(ResizeFilter filter, std::uint32_t width, std::uint32_t height) {
  if (filter == ResizeFilter::antialias) return std::make_unique<Antialias>(width, height);
  return std::make_unique<Bilinear>(width, height);
}

}  // namespace penstock
