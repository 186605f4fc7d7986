#include "datagen/recipe/noise_stock.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cmath>
#include <cstring>
#include <new>

#include "io_backends/core/parallel/parallel.hpp"

namespace penstock {
namespace {

constexpr size_t kFloatStampBytes = 16;   // a stamp has 4 elements with 20 random bits each
constexpr size_t kByteStampBytes = 16;    // a stamp has 16 elements with 5 random bits each
constexpr size_t kClassStampBytes = 256;  // a stamp has 64 elements with one random bit each
constexpr unsigned kOctaves = 12;         // octave n has a random point every 2^n elements; n is 0 to 11

// Noise is made in parts. A part is as long as the distance between two neighbouring points of the coarsest
// octave.
constexpr size_t kPartElements = size_t{1} << (kOctaves - 1);

using NoisePart = std::array<int32_t, kPartElements>;

// A sequence of noise that wraps around at its end. It is the sum of kOctaves octaves. An octave consists of
// random points between -2^18 and 2^18, joined by straight lines. The sum of twelve octaves is between -2^22
// and 2^22, and its deviation is about 1.7 * 2^18.
// Octaves are added from the coarsest to the finest. For the next octave, the middle of each line becomes one
// more point. Then a random value is added to every point, old and new.
class NoiseRing {
 public:
  NoiseRing(size_t elements, const RandomStream& random) : elements_(elements) {
    for (unsigned octave = 0; octave < kOctaves; ++octave) octaves_.push_back(random.substream(octave));
  }

  // Makes part number `part` of the sequence: kPartElements elements, from number part * kPartElements on.
  void make(size_t part, NoisePart& out) const {
    std::array<std::array<int32_t, kPartElements + 1>, 2> points;
    points[kOctaves % 2][0] = 0;
    for (unsigned octave = kOctaves; octave-- > 0;) {
      const auto& coarse_points = points[(octave + 1) % 2];
      auto& fine_points = points[octave % 2];
      const size_t count = kPartElements >> octave;
      fine_points[0] = coarse_points[0];
      for (size_t i = 0; i < count / 2; ++i) {
        fine_points[2 * i] = coarse_points[i];
        fine_points[2 * i + 1] = (coarse_points[i] + coarse_points[i + 1]) >> 1;
      }
      fine_points[count] = coarse_points[count / 2];
      add(octave, part * count, std::span(fine_points).first(count + 1));
    }
    std::copy_n(points[0].begin(), kPartElements, out.begin());
  }

 private:
  // Returns point number `which` of the four points that a 64-bit random number contains.
  static int32_t point_of(uint64_t draw, size_t which) { return int16_t(draw >> (16 * which)) * 8; }
  // Adds the random values of `octave` to `points`: the points of this octave from number `first` on. The
  // octave has elements_ >> octave points and wraps around.
  void add(unsigned octave, size_t first, std::span<int32_t> points) const {
    const RandomStream& octave_random = octaves_[octave];
    const size_t last = points.size() - 1;
    size_t i = 0;
    for (; i + 4 <= last; i += 4) {
      const uint64_t draw = octave_random.bits((first + i) / 4);
      for (size_t k = 0; k < 4; ++k) points[i + k] += point_of(draw, k);
    }
    for (; i <= last; ++i) {
      const size_t n = (first + i) % (elements_ >> octave);
      points[i] += point_of(octave_random.bits(n / 4), n % 4);
    }
  }

  const size_t elements_;
  std::vector<RandomStream> octaves_;
};

void put_elements(Noise kind, const NoisePart& part, std::byte* out) {
  std::array<float, kPartElements> elements;
  switch (kind) {
    case Noise::bytes:
      for (const int32_t value : part)
        *out++ = static_cast<std::byte>(std::clamp((value >> 14) + 128, 0, 255));
      return;
    case Noise::floats:
      for (size_t i = 0; i < kPartElements; ++i) elements[i] = float(part[i]) * 0x1.0p-19F;
      break;
    case Noise::classes:
      for (size_t i = 0; i < kPartElements; ++i)
        elements[i] = part[i] > 650'000 ? 2.0F : (part[i] > 225'000 ? 1.0F : 0.0F);
      break;
  }
  std::memcpy(out, elements.data(), sizeof elements);
}

// The bits of a float that are random in a stamp: the last 20 bits of its fraction.
constexpr uint32_t kFloatMask = 0x000fffff;

float float_at(const std::byte* bytes, size_t element) {
  float value = 0;
  std::memcpy(&value, bytes + element * sizeof value, sizeof value);
  return value;
}

// The size of a stamp, indexed by Noise.
constexpr size_t kStampBytes[] = {kByteStampBytes, kFloatStampBytes, kClassStampBytes};

}  // namespace

void Moments::add(float value) {
  ++count;
  sum += double(value);
  sum_of_squares += double(value) * double(value);
  min_value = std::min(min_value, value);
  max_value = std::max(max_value, value);
}

void Moments::add(const Moments& others) {
  count += others.count;
  sum += others.sum;
  sum_of_squares += others.sum_of_squares;
  min_value = std::min(min_value, others.min_value);
  max_value = std::max(max_value, others.max_value);
}

double Moments::deviation() const {
  return std::sqrt(std::max(0.0, sum_of_squares / double(count) - mean() * mean()));
}

NoiseStock::NoiseStock(Noise kind, uint64_t seed, unsigned threads)
    : kind_(kind),
      stamp_bytes_(kStampBytes[size_t(kind)]),
      bytes_(kStockBytes),
      body_crc32c_shift_(crc32c_fixed_shift(kBlockBytes - stamp_bytes_)),
      body_crc32_shift_(crc32_fixed_shift(kBlockBytes - stamp_bytes_)),
      body_crc32cs_(kBlockCount),
      body_crc32s_(kBlockCount),
      body_moments_(kind == Noise::floats ? kBlockCount : 0) {
  const RandomStream random(seed, "noise stock");
  const size_t element_bytes = kind == Noise::bytes ? 1 : sizeof(float);
  const NoiseRing ring(kStockBytes / element_bytes, random);
  constexpr size_t kBlocksAtOnce = 16;  // number of blocks that a thread makes at once
  const auto make = [&](unsigned /*worker*/, uint64_t group) {
    NoisePart part;
    const size_t first = group * kBlocksAtOnce;
    const size_t part_bytes = kPartElements * element_bytes;
    for (size_t at = first * kBlockBytes; at < (first + kBlocksAtOnce) * kBlockBytes; at += part_bytes) {
      ring.make(at / part_bytes, part);
      put_elements(kind, part, bytes_.data() + at);
    }
    for (size_t block = first; block < first + kBlocksAtOnce; ++block) {
      body_crc32cs_[block] = crc32c(body(block));
      body_crc32s_[block] = crc32(body(block));
      if (kind == Noise::floats)
        for (size_t i = 0; i < body(block).size() / sizeof(float); ++i)
          body_moments_[block].add(float_at(body(block).data(), i));
    }
    return success();
  };
  static_assert(kBlockCount % kBlocksAtOnce == 0);
  if (!for_each_index(kBlockCount / kBlocksAtOnce, compute_threads(threads), 1, make).ok())
    throw std::bad_alloc();
}

Moments NoiseStock::moments() const {
  Moments out;
  for (size_t block = 0; block < kBlockCount; ++block) {
    out.add(body_moments_[block]);
    for (size_t i = 0; i < kFloatStampBytes / sizeof(float); ++i) {
      const float value = float_at(bytes_.data() + block * kBlockBytes, i);
      out.add(value);
      const auto bits = std::bit_cast<uint32_t>(value);
      for (const uint32_t stamped : {bits | kFloatMask, bits & ~kFloatMask}) {
        out.min_value = std::min(out.min_value, std::bit_cast<float>(stamped));
        out.max_value = std::max(out.max_value, std::bit_cast<float>(stamped));
      }
    }
  }
  return out;
}

void NoiseStock::stamp(size_t block, const RandomStream& stamps, uint64_t n, std::byte* out) const {
  if (kind_ == Noise::classes) {
    const uint64_t bits = stamps.bits(n);
    for (unsigned i = 0; i < kClassStampBytes / sizeof(float); ++i) {
      const float element = (bits >> i & 1U) != 0 ? 1.0F : 0.0F;
      std::memcpy(out + i * sizeof element, &element, sizeof element);
    }
    return;
  }
  // Copies the elements of the block and changes only low bits: the last 20 of a float's fraction, or the
  // last 5 of a byte.
  const uint64_t mask = kind_ == Noise::floats ? kFloatMask * 0x0000000100000001U : 0x1f1f1f1f1f1f1f1fU;
  uint64_t words[2];
  std::memcpy(words, bytes_.data() + block * kBlockBytes, sizeof words);
  words[0] ^= stamps.bits(2 * n) & mask;
  words[1] ^= stamps.bits(2 * n + 1) & mask;
  std::memcpy(out, words, sizeof words);
}

const FieldBytes& NoiseArray::make(const RandomStream& stream, uint64_t bytes) {
  const size_t stamp_bytes = stock_.stamp_bytes();
  const auto blocks = size_t((bytes + NoiseStock::kBlockBytes - 1) / NoiseStock::kBlockBytes);
  if (stamps_.size() < blocks * stamp_bytes) stamps_.resize(blocks * stamp_bytes);
  pieces_.clear();
  pieces_.reserve(blocks * 2);
  const RandomStream stamps = stream.substream(1);
  first_block_ = size_t(stream.below(0, NoiseStock::kBlockCount));
  size_t block = first_block_;
  std::byte* stamp = stamps_.data();
  uint32_t crc = 0;
  uint64_t left = bytes;
  for (size_t n = 0; n < blocks; ++n, stamp += stamp_bytes) {
    stock_.stamp(block, stamps, n, stamp);
    const std::span<const std::byte> stamp_piece(stamp, std::min<uint64_t>(stamp_bytes, left));
    crc = crc32c(stamp_piece, crc);
    pieces_.push_back(stamp_piece);
    if (left >= NoiseStock::kBlockBytes) {
      crc = stock_.crc32c_with_body(crc, block);
      pieces_.push_back(stock_.body(block));
    } else if (left > stamp_bytes) {
      pieces_.push_back(stock_.body(block).first(size_t(left - stamp_bytes)));
      crc = crc32c(pieces_.back(), crc);
    }
    left -= std::min<uint64_t>(left, NoiseStock::kBlockBytes);
    block = (block + 1) % NoiseStock::kBlockCount;
  }
  field_ = {.pieces = pieces_, .bytes = bytes, .crc32c = crc, .crc32 = this};
  return field_;
}

Moments NoiseArray::moments(uint64_t begin, uint64_t end) const {
  constexpr uint64_t kBlockElements = NoiseStock::kBlockBytes / sizeof(float);
  constexpr uint64_t kStampElements = kFloatStampBytes / sizeof(float);
  Moments out;
  while (begin < end) {
    const uint64_t n = begin / kBlockElements;
    const size_t block = (first_block_ + n) % NoiseStock::kBlockCount;
    const uint64_t block_end = std::min(kBlockElements, begin % kBlockElements + (end - begin));
    uint64_t i = begin % kBlockElements;
    begin += block_end - i;
    const bool whole_body = i <= kStampElements && block_end == kBlockElements;
    for (; i < std::min(kStampElements, block_end); ++i)
      out.add(float_at(stamps_.data() + n * kFloatStampBytes, i));
    if (whole_body) {
      out.add(stock_.moments(block));
      continue;
    }
    for (; i < block_end; ++i) out.add(float_at(stock_.body(block).data(), i - kStampElements));
  }
  return out;
}

// Computes the CRC-32 of the last array that was made. In pieces_, stamps and bodies of blocks alternate.
// Only the last piece may be shorter than a whole stamp or body.
uint32_t NoiseArray::crc32() const {
  uint32_t crc = 0;
  size_t block = first_block_;
  for (size_t i = 0; i < pieces_.size(); ++i) {
    if (i % 2 == 0) {
      crc = penstock::crc32(pieces_[i], crc);
      continue;
    }
    const bool is_complete = pieces_[i].size() == NoiseStock::kBlockBytes - stock_.stamp_bytes();
    crc = is_complete ? stock_.crc32_with_body(crc, block) : penstock::crc32(pieces_[i], crc);
    block = (block + 1) % NoiseStock::kBlockCount;
  }
  return crc;
}

}  // namespace penstock
