#include "miniapps/pipeline/resize.hpp"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

using Lanes = float __attribute__((vector_size(16)));  // GCC and clang turn it into what the machine has

Lanes load(const float* from) {
  Lanes lanes;
  std::memcpy(&lanes, from, sizeof(lanes));
  return lanes;
}

// Contiguous, so that compilers vectorise it: nearly all of the work is here.
void blend_lines(const std::uint8_t* __restrict upper, const std::uint8_t* __restrict lower, float towards,
                 std::size_t count, float* __restrict out) {
  for (std::size_t i = 0; i < count; ++i) {
    const auto a = static_cast<float>(static_cast<int>(upper[i]));
    const auto b = static_cast<float>(static_cast<int>(lower[i]));
    out[i] = a + (b - a) * towards;
  }
}

}  // namespace

BilinearResizer::BilinearResizer(std::uint32_t width, std::uint32_t height,
                                 const Normalisation& normalisation)
    : width_(width), height_(height) {
  for (std::size_t c = 0; c < 3; ++c) {
    scale_[c] = 1.0F / (255.0F * normalisation.deviation[c]);
    shift_[c] = -normalisation.mean[c] / normalisation.deviation[c];
  }
}

void BilinearResizer::Axis::prepare(std::uint32_t source_size, std::uint32_t target_size,
                                    std::uint32_t unit) {
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

void BilinearResizer::run(const Image& image, std::span<float> out) {
  const std::size_t line_bytes = std::size_t{3} * image.width;
  columns_.prepare(image.width, width_, 3);
  rows_.prepare(image.height, height_, 1);
  if (line_.size() < line_bytes + 4)
    line_.resize(line_bytes + 4);  // four lanes are read where three are meant
  const Lanes scale = load(scale_.data());
  const Lanes shift = load(shift_.data());
  float* target = out.data();
  for (std::uint32_t y = 0; y < height_; ++y) {
    const std::uint8_t* upper = image.pixels.data() + rows_.first[y] * line_bytes;
    blend_lines(upper, upper + rows_.step * line_bytes, rows_.towards[y], line_bytes, line_.data());
    const bool last_line = y + 1 == height_;
    for (std::uint32_t x = 0; x < width_; ++x, target += 3) {
      const float* at = line_.data() + columns_.first[x];
      const Lanes left = load(at);
      const Lanes right = load(at + columns_.step);
      const Lanes value = (left + (right - left) * columns_.towards[x]) * scale + shift;
      // Three floats are meant; the fourth is overwritten by the next pixel, which the very last one does not
      // have.
      std::memcpy(target, &value, last_line && x + 1 == width_ ? 3 * sizeof(float) : sizeof(value));
    }
  }
}

}  // namespace penstock
