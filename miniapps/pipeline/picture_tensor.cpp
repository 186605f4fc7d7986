#include "miniapps/pipeline/picture_tensor.hpp"

#if defined(__x86_64__)
#include <cpuid.h>
#include <immintrin.h>
#endif

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>

#include "io_backends/core/options.hpp"

namespace penstock {
namespace {

size_t pixel_bytes(PixelType type) {
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

// Converts a float to the bits of a binary16 (16-bit float). It has no branches, so that compilers can
// convert several numbers at a time.
uint32_t half_bits(float value) {
  constexpr uint32_t kInfinity = 255U << 23U;
  // The bits of 2^16. From this number on, the result is infinity. Numbers from 65520 to below 2^16 are
  // rounded up to infinity.
  constexpr uint32_t kLeastInfinite = 143U << 23U;
  constexpr uint32_t kLeastNormal = 113U << 23U;  // bits of 2^-14
  // Adding this number to a small float rounds the sum to a multiple of 2^-24, the distance between
  // neighbouring denormal binary16 numbers.
  constexpr float kDenormalMagic = 0.5F;
  const uint32_t bits = std::bit_cast<uint32_t>(value);
  const uint32_t sign = (bits >> 16U) & 0x8000U;
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  const uint32_t odd_bit = (magnitude >> 13U) & 1U;
  const uint32_t normal_bits = (magnitude - (112U << 23U) + 0xFFFU + odd_bit) >> 13U;
  const uint32_t denormal_bits = std::bit_cast<uint32_t>(std::bit_cast<float>(magnitude) + kDenormalMagic) -
                                 std::bit_cast<uint32_t>(kDenormalMagic);
  const uint32_t special_bits = magnitude > kInfinity ? 0x7E00U : 0x7C00U;
  const uint32_t finite_bits = magnitude < kLeastNormal ? denormal_bits : normal_bits;
  return sign | (magnitude >= kLeastInfinite ? special_bits : finite_bits);
}

// Four floats at a time. GCC and clang compile arithmetic on them to vector instructions of the machine.
using Floats = float __attribute__((vector_size(16)));
using Ints = int32_t __attribute__((vector_size(16)));
constexpr size_t kLanes = 4;

Floats load(const float* from) {
  Floats lanes;
  std::memcpy(&lanes, from, sizeof lanes);
  return lanes;
}

#if defined(__x86_64__)
// Converts eight numbers at a time, by processor instructions that round like half_bits(). Numbers that are
// left over (fewer than eight) stay for the caller. Returns how many numbers it converted.
__attribute__((target("avx,f16c"))) size_t put_halves_by_eight(std::span<const float> from, uint16_t* out) {
  size_t i = 0;
  for (; i + 8 <= from.size(); i += 8) {
    const __m128i halves = _mm256_cvtps_ph(_mm256_loadu_ps(from.data() + i), _MM_FROUND_TO_NEAREST_INT);
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out + i), halves);
  }
  return i;
}
// Whether the processor has the instructions f16c, which convert to binary16. This code asks the processor
// itself, because clang 14 does not accept the name f16c in __builtin_cpu_supports().
bool has_f16c() {
  static const bool supported = [] {
    unsigned a = 0;
    unsigned b = 0;
    unsigned c = 0;
    unsigned d = 0;
    return __builtin_cpu_supports("avx") != 0 && __get_cpuid(1, &a, &b, &c, &d) != 0 && (c & bit_F16C) != 0;
  }();
  return supported;
}
#else
size_t put_halves_by_eight(std::span<const float>, uint16_t*) {
  return 0;
}
bool has_f16c() {
  return false;
}
#endif

void put_halves(std::span<const float> from, uint16_t* out) {
  size_t i = has_f16c() ? put_halves_by_eight(from, out) : 0;
  for (; i < from.size(); ++i) out[i] = uint16_t(half_bits(from[i]));
}

// Converts numbers from 0 to 255 to bytes, rounded to nearest, halves up. Clamped numbers are not negative,
// so adding 0.5 and truncating rounds them.
void put_octets(std::span<const float> from, uint8_t* out) {
  constexpr float kLargest = 255.0F;
  constexpr float kHalf = 0.5F;
  size_t i = 0;
  for (; i + kLanes <= from.size(); i += kLanes) {
    Floats clamped = load(from.data() + i);
    clamped = clamped < 0.0F ? Floats{} : clamped;
    clamped = clamped > kLargest ? Floats{kLargest, kLargest, kLargest, kLargest} : clamped;
    const Ints integers = __builtin_convertvector(clamped + kHalf, Ints);
    for (size_t lane = 0; lane < kLanes; ++lane) out[i + lane] = uint8_t(integers[lane]);
  }
  for (; i < from.size(); ++i) out[i] = uint8_t(int(std::clamp(from[i], 0.0F, kLargest) + kHalf));
}

void put_numbers(std::span<const float> from, std::byte* to, PixelType type) {
  if (type == PixelType::f32) {
    std::memcpy(to, from.data(), from.size_bytes());
  } else if (type == PixelType::f16) {
    put_halves(from, reinterpret_cast<uint16_t*>(to));
  } else {
    put_octets(from, reinterpret_cast<uint8_t*>(to));
  }
}

// Separates red, green and blue of a line: planes[c * width + x] = line[3 * x + c].
void split_channels(std::span<const float> line, size_t width, float* planes) {
  size_t x = 0;
  for (; x + kLanes <= width; x += kLanes) {
    const Floats a = load(line.data() + 3 * x);      // red green blue red
    const Floats b = load(line.data() + 3 * x + 4);  // green blue red green
    const Floats c = load(line.data() + 3 * x + 8);  // blue red green blue
    const Floats red = __builtin_shufflevector(__builtin_shufflevector(a, b, 0, 3, 6, 6), c, 0, 1, 2, 5);
    const Floats green = __builtin_shufflevector(__builtin_shufflevector(a, b, 1, 4, 7, 7), c, 0, 1, 2, 6);
    const Floats blue = __builtin_shufflevector(__builtin_shufflevector(a, b, 2, 5, 5, 5), c, 0, 1, 4, 7);
    std::memcpy(planes + x, &red, sizeof red);
    std::memcpy(planes + width + x, &green, sizeof green);
    std::memcpy(planes + 2 * width + x, &blue, sizeof blue);
  }
  for (; x < width; ++x)
    for (size_t channel = 0; channel < 3; ++channel) planes[channel * width + x] = line[3 * x + channel];
}

// PENSTOCK_WIDE marks the functions that loop over whole lines, which do nearly all the work. GCC on x86-64
// Linux compiles them a second time for AVX2, and the dynamic loader chooses the version. Builds with a
// sanitizer have one version.
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && \
    !defined(PENSTOCK_ADDRESS_SANITIZER) && !defined(PENSTOCK_THREAD_SANITIZER)
#define PENSTOCK_WIDE __attribute__((target_clones("avx2", "default")))
#else
#define PENSTOCK_WIDE
#endif

PENSTOCK_WIDE void blend_lines(const uint8_t* __restrict upper, const uint8_t* __restrict lower,
                               float fraction, size_t count, float* __restrict out) {
  for (size_t i = 0; i < count; ++i) {
    const auto a = float(int(upper[i]));
    const auto b = float(int(lower[i]));
    out[i] = a + (b - a) * fraction;
  }
}

float as_float(uint8_t pixel) {
  return float(int(pixel));
}

// Computes out[i] = sum over t of weights[t] * source[t * stride + i]. One result line usually needs three to
// five source lines. One pass adds at most four of them.
PENSTOCK_WIDE void add_up_lines(const uint8_t* __restrict source, size_t stride,
                                std::span<const float> weights, size_t count, float* __restrict out) {
  std::fill_n(out, count, 0.0F);
  for (size_t t = 0; t < weights.size(); t += 4) {
    const uint8_t* const at = source + t * stride;
    const float* const w = weights.data() + t;
    switch (weights.size() - t) {
      case 1:
        for (size_t i = 0; i < count; ++i) out[i] += as_float(at[i]) * w[0];
        break;
      case 2:
        for (size_t i = 0; i < count; ++i) out[i] += as_float(at[i]) * w[0] + as_float(at[stride + i]) * w[1];
        break;
      case 3:
        for (size_t i = 0; i < count; ++i)
          out[i] +=
              as_float(at[i]) * w[0] + as_float(at[stride + i]) * w[1] + as_float(at[2 * stride + i]) * w[2];
        break;
      default:
        for (size_t i = 0; i < count; ++i)
          out[i] += as_float(at[i]) * w[0] + as_float(at[stride + i]) * w[1] +
                    as_float(at[2 * stride + i]) * w[2] + as_float(at[3 * stride + i]) * w[3];
    }
  }
}

// Computes a line of pixels, each from two pixels of `line`: out[x] lies between the pixel at line[first[x]]
// and the pixel at line[first[x] + step]. fractions[x] is the weight of the second.
// A pixel has three floats, but four are read and written at a time. The fourth is overwritten by the next
// pixel. So `out` needs one more float after the last pixel.
PENSTOCK_WIDE void blend_pixels(const float* __restrict line, const uint32_t* __restrict first, uint32_t step,
                                const float* __restrict fractions, uint32_t width, float* __restrict out) {
  for (uint32_t x = 0; x < width; ++x) {
    const Floats left = load(line + first[x]);
    const Floats right = load(line + first[x] + step);
    const Floats pixel = left + (right - left) * fractions[x];
    std::memcpy(out + size_t{3} * x, &pixel, sizeof pixel);
  }
}

template <uint32_t kTaps>
__attribute__((always_inline)) inline void add_up_taps(const float* __restrict line,
                                                       const uint32_t* __restrict first,
                                                       const float* __restrict weights, uint32_t width,
                                                       float* __restrict out) {
  for (uint32_t x = 0; x < width; ++x, weights += kTaps) {
    const float* const at = line + first[x];
    Floats sum = load(at) * weights[0];
    for (uint32_t i = 1; i < kTaps; ++i) sum += load(at + size_t{3} * i) * weights[i];
    std::memcpy(out + size_t{3} * x, &sum, sizeof sum);
  }
}

// Computes out[x] = sum over i < taps of weights[x * taps + i] * (the pixel at line[first[x] + 3 i]). A pixel
// has three floats, of which four are read and written at a time, as in blend_pixels().
PENSTOCK_WIDE void add_up_pixels(const float* __restrict line, const uint32_t* __restrict first,
                                 uint32_t taps, const float* __restrict weights, uint32_t width,
                                 float* __restrict out) {
  switch (taps) {  // loops for the usual numbers of taps are unrolled
    case 3:
      return add_up_taps<3>(line, first, weights, width, out);
    case 4:
      return add_up_taps<4>(line, first, weights, width, out);
    case 5:
      return add_up_taps<5>(line, first, weights, width, out);
    case 6:
      return add_up_taps<6>(line, first, weights, width, out);
    case 7:
      return add_up_taps<7>(line, first, weights, width, out);
    default:
      break;
  }
  for (uint32_t x = 0; x < width; ++x, weights += taps) {
    const float* const at = line + first[x];
    Floats sum = load(at) * weights[0];
    for (uint32_t i = 1; i < taps; ++i) sum += load(at + size_t{3} * i) * weights[i];
    std::memcpy(out + size_t{3} * x, &sum, sizeof sum);
  }
}

// Which source positions contribute to a target position: from `first` to below `end`. The calculation is
// that of precompute_coeffs in Pillow's Resample.c.
struct Support {
  uint32_t first = 0;
  uint32_t end = 0;
};
Support support_of(double centre, double half_width, uint32_t source_size) {
  return {uint32_t(std::max(std::lround(centre - half_width), 0L)),
          std::min(uint32_t(std::lround(centre + half_width)), source_size)};
}

}  // namespace

uint16_t half_from_float(float value) {
  return uint16_t(half_bits(value));
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

size_t PictureTensor::bytes() const {
  return size_t{3} * pixel_bytes(type) * width * height;
}

std::string PictureTensor::text() const {
  const std::string w = std::to_string(width);
  const std::string h = std::to_string(height);
  return std::string(name_of(type)) +
         (axes == Axes::nhwc ? " NHWC " + h + "x" + w + "x3" : " NCHW 3x" + h + "x" + w);
}

Result<ResizeFilter> parse_resize(std::string_view name) {
  if (name == "bilinear") return ResizeFilter::bilinear;
  if (name == "antialias") return ResizeFilter::antialias;
  return unknown_name("way to resize", name, {"bilinear", "antialias"});
}

Resizer::Resizer(ResizeFilter filter, uint32_t width, uint32_t height)
    : filter_(filter), width_(width), height_(height) {}

void Resizer::begin(const Image& image, const PicturePart& part, bool mirrored) {
  stride_ = size_t{3} * image.width;
  pixels_ = image.pixels.data() + part.top * stride_ + size_t{3} * part.left;
  part_width_ = part.width;
  // One more float than the pixels need: a pixel has three floats, but four are read at a time.
  line_.resize(std::max(line_.size(), size_t{3} * part.width + 1));
  Axis& columns = columns_by_mirror_[mirrored ? 1 : 0];
  compute_taps(columns, part.width, width_, 3, mirrored);
  columns_ = &columns;
  compute_taps(rows_, part.height, height_, 1, false);
}

void Resizer::line(uint32_t y, std::span<float> out) {
  const size_t float_count = size_t{3} * part_width_;
  const uint8_t* const source = pixels_ + rows_.first_source[y] * stride_;
  if (filter_ == ResizeFilter::bilinear) {
    blend_lines(source, source + rows_.step * stride_, rows_.weights[y], float_count, line_.data());
    blend_pixels(line_.data(), columns_->first_source.data(), columns_->step, columns_->weights.data(),
                 width_, out.data());
    return;
  }
  add_up_lines(source, stride_, std::span(rows_.weights).subspan(size_t{y} * rows_.taps, rows_.taps),
               float_count, line_.data());
  add_up_pixels(line_.data(), columns_->first_source.data(), columns_->taps, columns_->weights.data(), width_,
                out.data());
}

void Resizer::compute_taps(Axis& axis, uint32_t source_size, uint32_t target_size, uint32_t unit,
                           bool mirrored) const {
  if (source_size == axis.source_size) return;
  axis.source_size = source_size;
  axis.first_source.resize(target_size);
  const double ratio = double(source_size) / target_size;
  const auto target_index = [&](uint32_t i) { return mirrored ? target_size - 1 - i : i; };
  if (filter_ == ResizeFilter::bilinear) {
    axis.step = source_size > 1 ? unit : 0;
    axis.weights.resize(target_size);
    const uint32_t last_neighbour = source_size > 1 ? source_size - 2 : 0;
    for (uint32_t i = 0; i < target_size; ++i) {
      const double at = std::clamp((i + 0.5) * ratio - 0.5, 0.0, double(source_size - 1));
      const uint32_t neighbour = std::min(uint32_t(at), last_neighbour);
      axis.first_source[target_index(i)] = neighbour * unit;
      axis.weights[target_index(i)] = float(at - neighbour);
    }
    return;
  }
  const double half_width = std::max(ratio, 1.0);  // half the width of the triangle filter, in source pixels
  const auto centre_of = [ratio](uint32_t i) { return (i + 0.5) * ratio; };
  axis.taps = 1;
  for (uint32_t i = 0; i < target_size; ++i) {
    const Support support = support_of(centre_of(i), half_width, source_size);
    axis.taps = std::max(axis.taps, support.end - support.first);
  }
  axis.weights.assign(size_t{axis.taps} * target_size, 0.0F);
  for (uint32_t i = 0; i < target_size; ++i) {
    const Support support = support_of(centre_of(i), half_width, source_size);
    const auto weight = [&](uint32_t at) {
      return std::max(0.0, 1.0 - std::abs((at + 0.5 - centre_of(i)) / half_width));
    };
    double sum = 0;
    for (uint32_t at = support.first; at < support.end; ++at) sum += weight(at);
    const uint32_t from = std::min(support.first, source_size - axis.taps);
    axis.first_source[target_index(i)] = from * unit;
    float* const weights_to = axis.weights.data() + size_t{target_index(i)} * axis.taps;
    for (uint32_t at = support.first; at < support.end; ++at) weights_to[at - from] = float(weight(at) / sum);
  }
}

LineWriter::LineWriter(const PictureTensor& tensor)
    : tensor_(tensor), planar_(tensor.axes == Axes::nchw ? size_t{3} * tensor.width : 0) {
  for (size_t i = 0; i < scale_.size(); ++i) {
    const bool as_is = tensor.type == PixelType::u8;
    scale_[i] = as_is ? 1.0F : 1.0F / (255.0F * tensor.deviation[i % 3]);
    shift_[i] = as_is ? 0.0F : -tensor.mean[i % 3] / tensor.deviation[i % 3];
  }
}

// Normalises the numbers of `from` and writes them to `to`, which may be the same memory.
void LineWriter::normalise(std::span<const float> from, float* to) const {
  const std::array<Floats, 3> scale{load(scale_.data()), load(scale_.data() + 4), load(scale_.data() + 8)};
  const std::array<Floats, 3> shift{load(shift_.data()), load(shift_.data() + 4), load(shift_.data() + 8)};
  size_t i = 0;
  for (; i + scale_.size() <= from.size(); i += scale_.size()) {
    for (size_t part = 0; part < 3; ++part) {
      const Floats numbers = load(from.data() + i + part * kLanes) * scale[part] + shift[part];
      std::memcpy(to + i + part * kLanes, &numbers, sizeof numbers);
    }
  }
  for (; i < from.size(); ++i) to[i] = from[i] * scale_[i % 3] + shift_[i % 3];
}

void LineWriter::write(uint32_t y, std::span<float> line, std::span<std::byte> slot) {
  const size_t element_bytes = pixel_bytes(tensor_.type);
  if (tensor_.axes == Axes::nhwc) {
    std::byte* const target = slot.data() + y * line.size() * element_bytes;
    if (tensor_.type == PixelType::f32) return normalise(line, reinterpret_cast<float*>(target));
    if (tensor_.type == PixelType::f16) normalise(line, line.data());
    return put_numbers(line, target, tensor_.type);
  }
  if (tensor_.type != PixelType::u8) normalise(line, line.data());
  const size_t width = tensor_.width;
  split_channels(line, width, planar_.data());
  for (size_t channel = 0; channel < 3; ++channel)
    put_numbers(std::span(planar_).subspan(channel * width, width),
                slot.data() + (channel * tensor_.height + y) * width * element_bytes, tensor_.type);
}

}  // namespace penstock
