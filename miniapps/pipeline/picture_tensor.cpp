#include "miniapps/pipeline/picture_tensor.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstring>

#include "io_backends/core/options.hpp"

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

using Floats = float __attribute__((vector_size(16)));  // GCC and clang turn it into what the machine has
using Ints = std::int32_t __attribute__((vector_size(16)));
constexpr std::size_t kLanes = 4;

Floats load(const float* from) {
  Floats lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

#if defined(__x86_64__)
// Eight at a time, where the processor has instructions for it: they round as half_bits() does.
__attribute__((target("avx,f16c"))) std::size_t put_halves_by_eight(std::span<const float> from,
                                                                    std::uint16_t* out) {
  std::size_t i = 0;
  for (; i + 8 <= from.size(); i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from.data() + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
  return i;
}
// clang 14 cannot be asked for f16c by name.
bool has_halves() {
  static const bool has = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __builtin_cpu_supports("avx") != 0 && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return has;
}
#else
std::size_t put_halves_by_eight(std::span<const float>, std::uint16_t*) {
  return 0;
}
bool has_halves() {
  return false;
}
#endif

void put_halves(std::span<const float> from, std::uint16_t* out) {
  std::size_t i = has_halves() ? put_halves_by_eight(from, out) : 0;
  for (; i < from.size(); ++i) out[i] = static_cast<std::uint16_t>(half_bits(from[i]));
}

// To the nearest, halves up: what is kept is not negative, so that adding a half and cutting off does it.
void put_octets(std::span<const float> from, std::uint8_t* out) {
  constexpr float kMost = 255.0F;
  constexpr float kHalf = 0.5F;
  std::size_t i = 0;
  for (; i + kLanes <= from.size(); i += kLanes) {
    Floats kept = load(from.data() + i);
    kept = kept < 0.0F ? Floats{} : kept;
    kept = kept > kMost ? Floats{kMost, kMost, kMost, kMost} : kept;
    const Ints whole = __builtin_convertvector(kept + kHalf, Ints);
    for (std::size_t lane = 0; lane < kLanes; ++lane) out[i + lane] = static_cast<std::uint8_t>(whole[lane]);
  }
  for (; i < from.size(); ++i)
    out[i] = static_cast<std::uint8_t>(static_cast<int>(std::clamp(from[i], 0.0F, kMost) + kHalf));
}

void put(std::span<const float> from, std::byte* to, PixelType type) {
  if (type == PixelType::f32) {
    std::memcpy(to, from.data(), from.size_bytes());
  } else if (type == PixelType::f16) {
    put_halves(from, reinterpret_cast<std::uint16_t*>(to));
  } else {
    put_octets(from, reinterpret_cast<std::uint8_t*>(to));
  }
}

// Red, green and blue of a line, each on end: planes[c * width + x] = line[3 * x + c].
void part_channels(std::span<const float> line, std::size_t width, float* planes) {
  std::size_t x = 0;
  for (; x + kLanes <= width; x += kLanes) {
    const Floats a = load(line.data() + 3 * x);      // r g b r
    const Floats b = load(line.data() + 3 * x + 4);  // g b r g
    const Floats c = load(line.data() + 3 * x + 8);  // b r g b
    const Floats red = __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 3, 6, 6), c, 0, 1, 2, 5);
    const Floats green = __builtin_shufflevector(__builtin_shufflevector(a, b, 1, 4, 7, 7), c, 0, 1, 2, 6);
    const Floats blue = __builtin_shufflevector(__builtin_shufflevector(a, b, 2, 5, 5, 5), c, 0, 1, 4, 7);
    std::memcpy(planes + x, &red, sizeof red);
    std::memcpy(planes + width + x, &green, sizeof green);
    std::memcpy(planes + 2 * width + x, &blue, sizeof blue);
  }
  for (; x < width; ++x)
    for (std::size_t channel = 0; channel < 3; ++channel) planes[channel * width + x] = line[3 * x + channel];
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
    : tensor_(tensor), planar_(tensor.axes == Axes::nchw ? std::size_t{3} * tensor.width : 0) {
  for (std::size_t i = 0; i < scale_.size(); ++i) {
    const bool as_is = tensor.type == PixelType::u8;
    scale_[i] = as_is ? 1.0F : 1.0F / (255.0F * normalisation.deviation[i % 3]);
    shift_[i] = as_is ? 0.0F : -normalisation.mean[i % 3] / normalisation.deviation[i % 3];
  }
}

// The same numbers, normalised; `to` may be `from`.
void LineWriter::normalise(std::span<const float> from, float* to) const {
  const std::array<Floats, 3> scale{load(scale_.data()), load(scale_.data() + 4), load(scale_.data() + 8)};
  const std::array<Floats, 3> shift{load(shift_.data()), load(shift_.data() + 4), load(shift_.data() + 8)};
  std::size_t i = 0;
  for (; i + scale_.size() <= from.size(); i += scale_.size()) {
    for (std::size_t part = 0; part < 3; ++part) {
      const Floats numbers = load(from.data() + i + part * kLanes) * scale[part] + shift[part];
      std::memcpy(to + i + part * kLanes, &numbers, sizeof numbers);
    }
  }
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
  const std::size_t width = tensor_.width;
  part_channels(line, width, planar_.data());
  for (std::size_t channel = 0; channel < 3; ++channel)
    put(std::span(planar_).subspan(channel * width, width),
        slot.data() + (channel * tensor_.height + y) * width * one, tensor_.type);
}

}  // namespace penstock
