#include "miniapps/pipeline/picture_tensor.hpp"

#include <bit>
#include <cmath>
#include <cstring>

#include "io_backends/base/options.hpp"

namespace penstock {
namespace {

std::size_t pixel_bytes(PixelType type) {
  switch (type) {
    case PixelType::f32:
      return 4;
    case PixelType::f16:
      return 2;
    case PixelType::u8:
      return 1;
  }
  return 0;
}

std::string_view name_of(PixelType type) {
  return type == PixelType::f32 ? "f32" : type == PixelType::f16 ? "f16" : "u8";
}

// Branches would keep compilers from doing several at a time.
std::uint32_t half_bits(float value) {
  constexpr std::uint32_t kInfinity = 255U << 23U;
  constexpr std::uint32_t kLeastInfinite = 143U
                                           << 23U;  // 2^16: all from there on is infinity; 65520 rounds to it
  constexpr std::uint32_t kLeastNormal = 113U << 23U;  // 2^-14
  constexpr float kDenormalMagic = 0.5F;               // its ulp is that of the smallest halves
  const std::uint32_t bits = std::bit_cast<std::uint32_t>(value);
  const std::uint32_t sign = (bits >> 16U) & 0x8000U;
  const std::uint32_t magnitude = bits & 0x7FFFFFFFU;
  const std::uint32_t odd = (magnitude >> 13U) & 1U;
  const std::uint32_t normal = (magnitude - (112U << 23U) + 0xFFFU + odd) >> 13U;
  const std::uint32_t denormal =
      std::bit_cast<std::uint32_t>(std::bit_cast<float>(magnitude) + kDenormalMagic) -
      std::bit_cast<std::uint32_t>(kDenormalMagic);
  const std::uint32_t special = magnitude > kInfinity ? 0x7E00U : 0x7C00U;
  const std::uint32_t finite = magnitude < kLeastNormal ? denormal : normal;
  return sign | (magnitude >= kLeastInfinite ? special : finite);
}

void put(std::span<const float> from, std::byte* to, PixelType type) {
  if (type == PixelType::f32) {
    std::memcpy(to, from.data(), from.size_bytes());
  } else if (type == PixelType::f16) {
    auto* const out = reinterpret_cast<std::uint16_t*>(to);
    for (std::size_t i = 0; i < from.size(); ++i) out[i] = static_cast<std::uint16_t>(half_bits(from[i]));
  } else {
    auto* const out = reinterpret_cast<std::uint8_t*>(to);
    constexpr float kHalf = 0.5F;  // what is kept is not negative: it rounds as lround() does, without a call
    for (std::size_t i = 0; i < from.size(); ++i) {
      const float kept = from[i] < 0.0F ? 0.0F : from[i] > 255.0F ? 255.0F : from[i];
      out[i] = static_cast<std::uint8_t>(static_cast<int>(kept + kHalf));
    }
  }
}

}  // namespace

std::uint16_t half_from_float(float value) {
  return static_cast<std::uint16_t>(half_bits(value));
}

Result<PixelType> parse_pixel_type(std::string_view name) {
  for (const PixelType type : {PixelType::f32, PixelType::f16, PixelType::u8})
    if (name == name_of(type)) return type;
  return unknown_name("type of pixels", name, {"f32", "f16", "u8"});
}

Result<Axes> parse_axes(std::string_view name) {
  if (name == "nhwc") return Axes::nhwc;
  if (name == "nchw") return Axes::nchw;
  return unknown_name("order of axes", name, {"nhwc", "nchw"});
}

std::size_t PictureTensor::bytes() const {
  return std::size_t{3} * pixel_bytes(type) * width * height;
}

std::string PictureTensor::text() const {
  const std::string w = std::to_string(width);
  const std::string h = std::to_string(height);
  return std::string(name_of(type)) +
         (axes == Axes::nhwc ? " NHWC " + h + "x" + w + "x3" : " NCHW 3x" + h + "x" + w);
}

LineWriter::LineWriter(const PictureTensor& tensor, const Normalisation& normalisation)
    : tensor_(tensor), planar_(tensor.axes == Axes::nchw ? tensor.width : 0) {
  for (std::size_t i = 0; i < scale_.size(); ++i) {
    const bool as_is = tensor.type == PixelType::u8;
    scale_[i] = as_is ? 1.0F : 1.0F / (255.0F * normalisation.deviation[i % 3]);
    shift_[i] = as_is ? 0.0F : -normalisation.mean[i % 3] / normalisation.deviation[i % 3];
  }
}

// The same numbers, normalised; `to` may be `from`.
void LineWriter::normalise(std::span<const float> from, float* to) const {
  std::size_t i = 0;
  for (; i + scale_.size() <= from.size(); i += scale_.size())
    for (std::size_t lane = 0; lane < scale_.size(); ++lane)
      to[i + lane] = from[i + lane] * scale_[lane] + shift_[lane];
  for (; i < from.size(); ++i) to[i] = from[i] * scale_[i % 3] + shift_[i % 3];
}

void LineWriter::write(std::uint32_t y, std::span<float> line, std::span<std::byte> slot) {
  const std::size_t one = pixel_bytes(tensor_.type);
  if (tensor_.axes == Axes::nhwc) {
    std::byte* const to = slot.data() + y * line.size() * one;
    if (tensor_.type == PixelType::f32) return normalise(line, reinterpret_cast<float*>(to));
    if (tensor_.type == PixelType::f16) normalise(line, line.data());
    return put(line, to, tensor_.type);
  }
  if (tensor_.type != PixelType::u8) normalise(line, line.data());
  const std::size_t plane = std::size_t{tensor_.width} * tensor_.height;
  for (std::size_t channel = 0; channel < 3; ++channel) {
    for (std::size_t x = 0; x < planar_.size(); ++x) planar_[x] = line[3 * x + channel];
    put(planar_, slot.data() + (channel * plane + y * std::size_t{tensor_.width}) * one, tensor_.type);
  }
}

}  // namespace penstock
