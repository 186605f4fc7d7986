#include "datagen/recipe/noise_stock.hpp"

#include <algorithm>
#include <cstring>

namespace penstock {
namespace {

constexpr std::size_t kFloatStamp = 16;   // 4 elements, 20 bits of each
constexpr std::size_t kByteStamp = 16;    // 16 elements, 5 bits of each
constexpr std::size_t kClassStamp = 256;  // 64 elements, one bit of each
constexpr unsigned kOctaves = 12;         // 1, 2, 4 ... 2048 elements

// A ring of noise: in each octave random points are joined by straight lines, all octaves added. Points of
// +-2^18 in twelve octaves stay within +-2^22 with a deviation of about 1.7 * 2^18, and lines over 2^11
// elements within 32 bits: every step is exact.
std::vector<std::int32_t> noise_ring(std::size_t elements, const RandomStream& random) {
  std::vector<std::int32_t> ring(elements, 0);
  for (unsigned octave = 0; octave < kOctaves; ++octave) {
    const RandomStream points = random.substream(octave);
    const std::int32_t step = 1 << octave;
    const std::size_t count = elements >> octave;
    const auto point = [&](std::size_t n) {
      return static_cast<std::int32_t>(points.bits(n % count) >> 45U) - (1 << 18);
    };
    std::int32_t here = point(0);
    std::int32_t* out = ring.data();
    for (std::size_t n = 0; n < count; ++n, out += step) {
      const std::int32_t next = point(n + 1);
      for (std::int32_t i = 0; i < step; ++i) out[i] += (here * step + (next - here) * i) >> octave;
      here = next;
    }
  }
  return ring;
}

void put_floats(const std::vector<std::int32_t>& ring, std::byte* out) {
  for (const std::int32_t value : ring) {
    const float element = static_cast<float>(value) * 0x1.0p-19F;
    std::memcpy(out, &element, sizeof element);
    out += sizeof element;
  }
}

void put_bytes(const std::vector<std::int32_t>& ring, std::byte* out) {
  for (const std::int32_t value : ring)
    *out++ = static_cast<std::byte>(std::clamp((value >> 14) + 128, 0, 255));
}

void put_classes(const std::vector<std::int32_t>& ring, std::byte* out) {
  for (const std::int32_t value : ring) {
    const float element = value > 650'000 ? 2.0F : (value > 225'000 ? 1.0F : 0.0F);
    std::memcpy(out, &element, sizeof element);
    out += sizeof element;
  }
}

std::size_t stamp_bytes_of(Noise kind) {
  switch (kind) {
    case Noise::bytes:
      return kByteStamp;
    case Noise::floats:
      return kFloatStamp;
    case Noise::classes:
      break;
  }
  return kClassStamp;
}

}  // namespace

NoiseStock::NoiseStock(Noise kind, std::uint64_t seed)
    : kind_(kind),
      stamp_bytes_(stamp_bytes_of(kind)),
      bytes_(kBytes),
      body_crc32c_shift_(kBlock - stamp_bytes_),
      body_crc32_shift_(kBlock - stamp_bytes_),
      body_crc32cs_(kBlocks),
      body_crc32s_(kBlocks) {
  const RandomStream random(seed, "noise stock");
  switch (kind) {
    case Noise::bytes:
      put_bytes(noise_ring(kBytes, random), bytes_.data());
      break;
    case Noise::floats:
      put_floats(noise_ring(kBytes / sizeof(float), random), bytes_.data());
      break;
    case Noise::classes:
      put_classes(noise_ring(kBytes / sizeof(float), random), bytes_.data());
      break;
  }
  for (std::size_t block = 0; block < kBlocks; ++block) {
    body_crc32cs_[block] = crc32c(body(block));
    body_crc32s_[block] = crc32(body(block));
  }
}

void NoiseStock::stamp(std::size_t block, const RandomStream& stamps, std::uint64_t n, std::byte* out) const {
  if (kind_ == Noise::classes) {
    const std::uint64_t bits = stamps.bits(n);
    for (unsigned i = 0; i < kClassStamp / sizeof(float); ++i) {
      const float element = (bits >> i & 1U) != 0 ? 1.0F : 0.0F;
      std::memcpy(out + i * sizeof element, &element, sizeof element);
    }
    return;
  }
  // Low bits alone: of a float the last 20 of its fraction, of a byte the last 5.
  const std::uint64_t mask = kind_ == Noise::floats ? 0x000fffff000fffffU : 0x1f1f1f1f1f1f1f1fU;
  std::uint64_t words[2];
  std::memcpy(words, bytes_.data() + block * kBlock, sizeof words);
  words[0] ^= stamps.bits(2 * n) & mask;
  words[1] ^= stamps.bits(2 * n + 1) & mask;
  std::memcpy(out, words, sizeof words);
}

const FieldBytes& NoiseArray::make(const RandomStream& stream, std::uint64_t bytes) {
  const std::size_t stamp_bytes = stock_.stamp_bytes();
  const auto blocks = static_cast<std::size_t>((bytes + NoiseStock::kBlock - 1) / NoiseStock::kBlock);
  if (stamps_.size() < blocks * stamp_bytes) stamps_.resize(blocks * stamp_bytes);
  pieces_.clear();
  pieces_.reserve(blocks * 2);
  const RandomStream stamps = stream.substream(1);
  first_block_ = static_cast<std::size_t>(stream.below(0, NoiseStock::kBlocks));
  std::size_t block = first_block_;
  std::byte* stamp = stamps_.data();
  std::uint32_t crc = 0;
  std::uint64_t left = bytes;
  for (std::size_t n = 0; n < blocks; ++n, stamp += stamp_bytes) {
    stock_.stamp(block, stamps, n, stamp);
    const std::span<const std::byte> head(stamp, std::min<std::uint64_t>(stamp_bytes, left));
    crc = crc32c(head, crc);
    pieces_.push_back(head);
    if (left >= NoiseStock::kBlock) {
      crc = stock_.crc32c_behind(crc, block);
      pieces_.push_back(stock_.body(block));
    } else if (left > stamp_bytes) {
      pieces_.push_back(stock_.body(block).first(static_cast<std::size_t>(left - stamp_bytes)));
      crc = crc32c(pieces_.back(), crc);
    }
    left -= std::min<std::uint64_t>(left, NoiseStock::kBlock);
    block = (block + 1) % NoiseStock::kBlocks;
  }
  made_ = {.pieces = pieces_, .bytes = bytes, .crc32c = crc, .crc32 = this};
  return made_;
}

// Pieces are stamps and bodies by turns, and only the last may be cut.
std::uint32_t NoiseArray::crc32() const {
  std::uint32_t crc = 0;
  std::size_t block = first_block_;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (i % 2 == 0) {
      crc = penstock::crc32(pieces_[i], crc);
      continue;
    }
    const bool whole = pieces_[i].size() == NoiseStock::kBlock - stock_.stamp_bytes();
    crc = whole ? stock_.crc32_behind(crc, block) : penstock::crc32(pieces_[i], crc);
    block = (block + 1) % NoiseStock::kBlocks;
  }
  return crc;
}

}  // namespace penstock
