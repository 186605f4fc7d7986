// Arrays at memory speed: a stock of a few MiB is made once, and any array is gathered from it. What makes
// every 4 KiB of a data set unlike every other is a stamp at the head of each block.
#pragma once

#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "datagen/sample/sample.hpp"
#include "io_backends/core/checksums/crc32.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/random.hpp"

namespace penstock {

enum class Noise : std::uint8_t {
  bytes,    // u8, as a scan of something has them: neighbours are alike, 7 bits an element
  floats,   // f32 of mean 0 and deviation about 0.8, equal power in each octave from 1 to 2048 elements
  classes,  // f32 that is 0, 1 or 2, in runs: a segmentation
};

// Of elements that are floats: exact but for the rounding of sums.
struct Moments {
  std::uint64_t count = 0;
  double sum = 0;
  double squares = 0;
  float least = std::numeric_limits<float>::infinity();
  float most = -std::numeric_limits<float>::infinity();

  void add(float value);
  void add(const Moments& others);
  double mean() const { return sum / static_cast<double>(count); }
  double deviation() const;
};

// Takes some 30 ms of processor time to make, and 8 MiB to keep; std::bad_alloc where memory runs out. The
// same on every machine for a seed. Immutable afterwards; any thread.
class NoiseStock {
 public:
  static constexpr std::size_t kBlock = 4096;
  static constexpr std::size_t kBytes = std::size_t{8} << 20U;
  static constexpr std::size_t kBlocks = kBytes / kBlock;

  NoiseStock(Noise kind, std::uint64_t seed, unsigned threads = 0);  // 0: as many as there are processors

  // A block is a stamp, then a body.
  std::size_t stamp_bytes() const { return stamp_bytes_; }
  std::span<const std::byte> body(std::size_t block) const {
    return std::span(bytes_).subspan(block * kBlock + stamp_bytes_, kBlock - stamp_bytes_);
  }
  // The checksum of A and then a whole body, given that of A.
  std::uint32_t crc32c_behind(std::uint32_t crc, std::size_t block) const {
    return body_crc32c_shift_.combine(crc, body_crc32cs_[block]);
  }
  std::uint32_t crc32_behind(std::uint32_t crc, std::size_t block) const {
    return body_crc32_shift_.combine(crc, body_crc32s_[block]);
  }
  // Of a body; `floats` alone.
  const Moments& moments(std::size_t block) const { return body_moments_[block]; }
  // Of the whole stock; no element of any array, whatever its stamps, lies outside least and most. `floats`
  // alone.
  Moments moments() const;
  // The stamp that replaces the block's own beginning: valid elements that hold 64 bits of `stamps` and more,
  // near to what they replace.
  void stamp(std::size_t block, const RandomStream& stamps, std::uint64_t n, std::byte* out) const;

 private:
  const Noise kind_;
  const std::size_t stamp_bytes_;
  std::vector<std::byte> bytes_;
  CrcShift body_crc32c_shift_;
  CrcShift body_crc32_shift_;
  std::vector<std::uint32_t> body_crc32cs_;
  std::vector<std::uint32_t> body_crc32s_;
  std::vector<Moments> body_moments_;
};

// Gathers arrays from a stock, which must outlive it. One thread. Needs 48 bytes for each 4 KiB of the
// largest array (304 of `classes`).
class NoiseArray final : private Crc32Source {
 public:
  explicit NoiseArray(const NoiseStock& stock) : stock_(stock) {}

  // `bytes` of the array that `stream` stands for, with its checksums: two streams share no 4 KiB, wherever
  // in a file they come to lie. Runs once around the stock from a drawn place, and around again. Valid until
  // the next call.
  const FieldBytes& make(const RandomStream& stream, std::uint64_t bytes);

  // Of the elements [begin, end) of what was made last, at the cost of one step a block; `floats` alone.
  Moments moments(std::uint64_t begin, std::uint64_t end) const;

 private:
  std::uint32_t crc32() const override;

  const NoiseStock& stock_;
  std::size_t first_block_ = 0;
  std::vector<std::byte> stamps_;
  std::vector<std::span<const std::byte>> pieces_;
  FieldBytes made_;
};

}  // namespace penstock
