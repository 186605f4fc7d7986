#include "miniapps/pipeline/resize.hpp"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "io_backends/base/options.hpp"

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

// out[i] = sum over t of weights[t] * source[t * stride + i], some of them at a time, which stay in
// registers.
PENSTOCK_WIDE void add_up_lines(const std::uint8_t* __restrict source, std::size_t stride,
                                std::span<const float> weights, std::size_t count, float* __restrict out) {
  constexpr std::size_t kAtOnce = 32;
  const auto some = [&](std::size_t from, std::size_t many) {
    float sum[kAtOnce] = {};
    for (std::size_t t = 0; t < weights.size(); ++t) {
      const std::uint8_t* const at = source + t * stride + from;
      for (std::size_t i = 0; i < many; ++i)
        sum[i] += static_cast<float>(static_cast<int>(at[i])) * weights[t];
    }
    for (std::size_t i = 0; i < many; ++i) out[from + i] = sum[i];
  };
  std::size_t from = 0;
  for (; from + kAtOnce <= count; from += kAtOnce) some(from, kAtOnce);
  some(from, count - from);
}

// What all filters have in common: first lines are blended into one, then that one's pixels.
class LineResizer : public Resizer {
 protected:
  LineResizer(std::uint32_t width, std::uint32_t height) : width_(width), height_(height) {}

  void show(const PictureView& picture, bool mirrored) {
    picture_ = picture;
    mirrored_ = mirrored;
    // Four lanes are read where three are meant.
    line_.resize(std::max(line_.size(), line_floats() + 4));
  }
  std::size_t line_floats() const { return std::size_t{3} * picture_.width; }
  const std::uint8_t* source_line(std::uint32_t y) const { return picture_.pixels + y * picture_.stride; }

  // Pixel x of the result. The fourth lane is overwritten by the next pixel, or is the one more; mirrored, it
  // would be the pixel's before.
  void put(std::uint32_t x, Lanes pixel, std::span<float> out) const {
    if (mirrored_) {
      std::memcpy(out.data() + std::size_t{3} * (width_ - 1 - x), &pixel, 3 * sizeof(float));
    } else {
      std::memcpy(out.data() + std::size_t{3} * x, &pixel, sizeof(pixel));
    }
  }

  const std::uint32_t width_;
  const std::uint32_t height_;
  PictureView picture_;
  std::vector<float> line_;  // what one line of the result is made of, all of its pixels

 private:
  bool mirrored_ = false;
};

class Bilinear final : public LineResizer {
 public:
  Bilinear(std::uint32_t width, std::uint32_t height) : LineResizer(width, height) {}

  void begin(const PictureView& picture, bool mirrored) override {
    show(picture, mirrored);
    columns_.prepare(picture.width, width_, 3);
    rows_.prepare(picture.height, height_, 1);
  }

  void line(std::uint32_t y, std::span<float> out) override {
    const std::uint8_t* const upper = source_line(rows_.first[y]);
    blend_lines(upper, upper + rows_.step * picture_.stride, rows_.towards[y], line_floats(), line_.data());
    for (std::uint32_t x = 0; x < width_; ++x) {
      const float* const at = line_.data() + columns_.first[x];
      const Lanes left = load(at);
      const Lanes right = load(at + columns_.step);
      put(x, left + (right - left) * columns_.towards[x], out);
    }
  }

 private:
  // Where the two neighbours of each target position are, and how far it is towards the second.
  struct Axis {
    std::uint32_t source = 0;
    std::uint32_t step = 0;  // from the first neighbour to the second: 0 when the source is one wide
    std::vector<std::uint32_t> first;
    std::vector<float> towards;
    void prepare(std::uint32_t source_size, std::uint32_t target_size, std::uint32_t unit);
  };

  Axis columns_;
  Axis rows_;
};

void Bilinear::Axis::prepare(std::uint32_t source_size, std::uint32_t target_size, std::uint32_t unit) {
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
    first[i] = neighbour * unit;
    towards[i] = static_cast<float>(at - neighbour);
  }
}

class Antialias final : public LineResizer {
 public:
  Antialias(std::uint32_t width, std::uint32_t height) : LineResizer(width, height) {}

  void begin(const PictureView& picture, bool mirrored) override {
    show(picture, mirrored);
    columns_.prepare(picture.width, width_);
    rows_.prepare(picture.height, height_);
  }

  void line(std::uint32_t y, std::span<float> out) override {
    const Axis::Taps& lines = rows_.taps[y];
    add_up_lines(source_line(lines.first), picture_.stride,
                 std::span(rows_.weights).subspan(lines.weights, lines.count), line_floats(), line_.data());
    for (std::uint32_t x = 0; x < width_; ++x) {
      const Axis::Taps& taps = columns_.taps[x];
      const float* at = line_.data() + std::size_t{3} * taps.first;
      const float* const weights = columns_.weights.data() + taps.weights;
      Lanes sum = load(at) * weights[0];
      for (std::uint32_t i = 1; i < taps.count; ++i) sum += load(at + std::size_t{3} * i) * weights[i];
      put(x, sum, out);
    }
  }

 private:
  // Which source positions each target position is made of, and their weights, which add up to 1.
  struct Axis {
    struct Taps {
      std::uint32_t first = 0;
      std::uint32_t count = 0;
      std::size_t weights = 0;  // where they begin
    };
    std::uint32_t source = 0;
    std::vector<Taps> taps;
    std::vector<float> weights;
    void prepare(std::uint32_t source_size, std::uint32_t target_size);
  };

  Axis columns_;
  Axis rows_;
};

// Pillow's precompute_coeffs (its Resample.c) has the same support, centres and bounds.
void Antialias::Axis::prepare(std::uint32_t source_size, std::uint32_t target_size) {
  if (source_size == source) return;
  source = source_size;
  taps.resize(target_size);
  weights.clear();
  const double ratio = static_cast<double>(source_size) / target_size;
  const double reach = std::max(ratio, 1.0);  // of the triangle, to each side
  for (std::uint32_t i = 0; i < target_size; ++i) {
    const double centre = (i + 0.5) * ratio;
    const auto first = static_cast<std::uint32_t>(std::max(std::lround(centre - reach), 0L));
    const auto end = std::min(static_cast<std::uint32_t>(std::lround(centre + reach)), source_size);
    taps[i] = {first, end - first, weights.size()};
    double sum = 0;
    for (std::uint32_t at = first; at < end; ++at) {
      const double weight = std::max(0.0, 1.0 - std::abs((at + 0.5 - centre) / reach));
      weights.push_back(static_cast<float>(weight));
      sum += weight;
    }
    for (std::size_t at = taps[i].weights; at < weights.size(); ++at)
      weights[at] = static_cast<float>(weights[at] / sum);
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
