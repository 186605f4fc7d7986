#include "datagen/recipe/leaf_run.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace penstock {
namespace {

// -1, whose bits are all set, if `number` is negative; otherwise 0.
int sign_bits(int number) {
  return number >> 31;
}
int sign_bits(float number) {
  return sign_bits(std::bit_cast<int32_t>(number));
}

template <bool kBox>
void paint_blocks(const LeafRow& leaf, const LeafRun& run, uint8_t index) {
  const LeafRow row = leaf;
  const float border_squared = row.radius * row.radius;
  for (int block = 0; block < run.count; block += int{kSceneryBlock}) {
    const int8_t* const grain = run.grain + block;
    const int8_t* const patches = run.patches + block;
    std::array<int16_t, kSceneryBlock> tones;
    std::array<int16_t, kSceneryBlock> outside;
    const int last_pixel = run.count - 1 - block;
    for (size_t i = 0; i < kSceneryBlock; ++i) {
      const int x = int(i);
      const float u = row.u + float(block + x) * row.u_step;
      const float v = row.v + float(block + x) * row.v_step;
      int outside_bits = sign_bits(last_pixel - x);
      if constexpr (kBox)
        outside_bits |= sign_bits(row.radius - std::abs(u)) | sign_bits(row.radius - std::abs(v));
      else
        outside_bits |= sign_bits(border_squared + row.raggedness * float(patches[i]) - (u * u + v * v));
      const float tone = row.luma + row.light_u * u + row.light_v * v + row.texture * float(grain[i]);
      outside[i] = int16_t(outside_bits);
      tones[i] = int16_t(int(tone));
    }
    uint8_t* const luma = run.luma + block;
    uint8_t* const colour_index = run.colour_index + block;
    for (size_t i = 0; i < kSceneryBlock; ++i) {
      const int16_t tone = std::clamp(tones[i], int16_t{0}, int16_t{255});
      const auto keep_mask = uint8_t(outside[i]);
      luma[i] = uint8_t((uint8_t(tone) & ~keep_mask) | (luma[i] & keep_mask));
      colour_index[i] = uint8_t((index & ~keep_mask) | (colour_index[i] & keep_mask));
    }
  }
}

#if defined(__x86_64__)

#define PENSTOCK_AVX2 __attribute__((target("avx2")))

PENSTOCK_AVX2 __m256 to_floats(const int8_t* bytes) {
  return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(_mm_loadl_epi64(reinterpret_cast<const __m128i*>(bytes))));
}

// Converts two vectors of eight 32-bit numbers to one of sixteen 16-bit numbers, in order.
PENSTOCK_AVX2 __m256i narrow_to_16(__m256i first, __m256i second) {
  return _mm256_permute4x64_epi64(_mm256_packs_epi32(first, second), 0b11'01'10'00);
}

struct EightPixels {
  __m256i tones;
  __m256i outside;  // all bits set for each pixel outside the leaf
};

// Computes eight pixels of the run, from number `begin` on. Uses the same sums in the same order as
// paint_blocks(), so that they are rounded in the same way.
template <bool kBox>
PENSTOCK_AVX2 inline EightPixels eight_pixels(const LeafRow& row, const LeafRun& run, int begin) {
  const __m256i x = _mm256_add_epi32(_mm256_set1_epi32(begin), _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
  const __m256 x_float = _mm256_cvtepi32_ps(x);
  const __m256 u = _mm256_add_ps(_mm256_set1_ps(row.u), _mm256_mul_ps(x_float, _mm256_set1_ps(row.u_step)));
  const __m256 v = _mm256_add_ps(_mm256_set1_ps(row.v), _mm256_mul_ps(x_float, _mm256_set1_ps(row.v_step)));
  __m256 outside_bits = _mm256_castsi256_ps(_mm256_sub_epi32(_mm256_set1_epi32(run.count - 1), x));
  if constexpr (kBox) {
    const __m256 radius = _mm256_set1_ps(row.radius);
    const __m256 sign_bit = _mm256_set1_ps(-0.0F);
    outside_bits = _mm256_or_ps(outside_bits, _mm256_sub_ps(radius, _mm256_andnot_ps(sign_bit, u)));
    outside_bits = _mm256_or_ps(outside_bits, _mm256_sub_ps(radius, _mm256_andnot_ps(sign_bit, v)));
  } else {
    const __m256 border_shift = _mm256_mul_ps(_mm256_set1_ps(row.raggedness), to_floats(run.patches + begin));
    const __m256 border_squared = _mm256_add_ps(_mm256_set1_ps(row.radius * row.radius), border_shift);
    const __m256 distance_squared = _mm256_add_ps(_mm256_mul_ps(u, u), _mm256_mul_ps(v, v));
    outside_bits = _mm256_or_ps(outside_bits, _mm256_sub_ps(border_squared, distance_squared));
  }
  __m256 tone = _mm256_add_ps(_mm256_set1_ps(row.luma), _mm256_mul_ps(_mm256_set1_ps(row.light_u), u));
  tone = _mm256_add_ps(tone, _mm256_mul_ps(_mm256_set1_ps(row.light_v), v));
  tone = _mm256_add_ps(tone, _mm256_mul_ps(_mm256_set1_ps(row.texture), to_floats(run.grain + begin)));
  return {_mm256_cvttps_epi32(tone), _mm256_srai_epi32(_mm256_castps_si256(outside_bits), 31)};
}

template <bool kBox>
PENSTOCK_AVX2 void paint_blocks_avx2(const LeafRow& leaf, const LeafRun& run, uint8_t index) {
  const LeafRow row = leaf;
  const __m128i indices = _mm_set1_epi8(char(index));
  for (int block = 0; block < run.count; block += int{kSceneryBlock}) {
    const EightPixels first = eight_pixels<kBox>(row, run, block);
    const EightPixels second = eight_pixels<kBox>(row, run, block + 8);
    const __m256i tones = narrow_to_16(first.tones, second.tones);
    const __m256i outside = narrow_to_16(first.outside, second.outside);
    const __m128i tone = _mm_packus_epi16(_mm256_castsi256_si128(tones), _mm256_extracti128_si256(tones, 1));
    const __m128i keep_mask =
        _mm_packs_epi16(_mm256_castsi256_si128(outside), _mm256_extracti128_si256(outside, 1));
    auto* const luma = reinterpret_cast<__m128i*>(run.luma + block);
    auto* const colour_index = reinterpret_cast<__m128i*>(run.colour_index + block);
    _mm_storeu_si128(luma, _mm_blendv_epi8(tone, _mm_loadu_si128(luma), keep_mask));
    _mm_storeu_si128(colour_index, _mm_blendv_epi8(indices, _mm_loadu_si128(colour_index), keep_mask));
  }
}

#endif

}  // namespace

void paint_run_portable(const LeafRow& row, const LeafRun& run, bool is_box, uint8_t index) {
  is_box ? paint_blocks<true>(row, run, index) : paint_blocks<false>(row, run, index);
}

bool paint_run_has_avx2() {
#if defined(__x86_64__)
  static const bool has_avx2 = __builtin_cpu_supports("avx2") != 0;
  return has_avx2;
#else
  return false;
#endif
}

void paint_run(const LeafRow& row, const LeafRun& run, bool is_box, uint8_t index) {
#if defined(__x86_64__)
  if (paint_run_has_avx2())
    return is_box ? paint_blocks_avx2<true>(row, run, index) : paint_blocks_avx2<false>(row, run, index);
#endif
  paint_run_portable(row, run, is_box, index);
}

}  // namespace penstock
