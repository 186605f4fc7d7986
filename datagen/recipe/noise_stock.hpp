// Makes arrays as fast as memory can be read. A stock of a few MiB is made once, and arrays are gathered from
// its blocks. A stamp of random numbers at the start of each block makes every 4 KiB of a data set different
// from all others.
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

enum class Noise : uint8_t {
  bytes,    // u8, like a medical scan: neighbours are similar, 7 bits of information per element
  floats,   // f32 of mean 0 and deviation about 0.8, equal power in each octave from 1 to 2048 elements
  classes,  // f32 that is 0, 1 or 2, in runs, like a segmentation
};

// Statistics of `floats`. They are exact except for the rounding of sums.
struct Moments {
  uint64_t count = 0;
  double sum = 0;
  double sum_of_squares = 0;
  float min_value = std::numeric_limits<float>::infinity();
  float max_value = -std::numeric_limits<float>::infinity();

  void add(float value);
  void add(const Moments& others);
  double mean() const { return sum / double(count); }
  double deviation() const;
};

// The blocks from which arrays are gathered. Making it takes about 30 ms of processor time, and 8 MiB of
// memory. Throws std::bad_alloc if memory runs out. A seed gives the same stock on every machine. Immutable
// after it is made; any thread.
class NoiseStock {
 public:
  static constexpr size_t kBlockBytes = 4096;
  static constexpr size_t kStockBytes = size_t{8} << 20U;
  static constexpr size_t kBlockCount = kStockBytes / kBlockBytes;

  NoiseStock(Noise kind, uint64_t seed, unsigned threads = 0);  // 0: the number of processors

  // A block is a stamp followed by a body.
  size_t stamp_bytes() const { return stamp_bytes_; }
  std::span<const std::byte> body(size_t block) const {
    return std::span(bytes_).subspan(block * kBlockBytes + stamp_bytes_, kBlockBytes - stamp_bytes_);
  }
  // `crc` is the checksum of some bytes. Returns the checksum of these bytes followed by the body of `block`.
  uint32_t crc32c_with_body(uint32_t crc, size_t block) const {
    return body_crc32c_shift_.combine(crc, body_crc32cs_[block]);
  }
  uint32_t crc32_with_body(uint32_t crc, size_t block) const {
    return body_crc32_shift_.combine(crc, body_crc32s_[block]);
  }
  // The moments of the body of `block`. Only for `floats`.
  const Moments& moments(size_t block) const { return body_moments_[block]; }
  // The moments of the whole stock. Only for `floats`. Every element of every array is from min_value to
  // max_value, whatever its stamps are.
  Moments moments() const;
  // Writes to `out` stamp number `n` of an array, for the start of `block`. It consists of valid elements,
  // close to those that they replace, and contains at least 64 random bits of `stamps`.
  void stamp(size_t block, const RandomStream& stamps, uint64_t n, std::byte* out) const;

 private:
  const Noise kind_;
  const size_t stamp_bytes_;
  std::vector<std::byte> bytes_;
  CrcShift body_crc32c_shift_;
  CrcShift body_crc32_shift_;
  std::vector<uint32_t> body_crc32cs_;
  std::vector<uint32_t> body_crc32s_;
  std::vector<Moments> body_moments_;
};

// Gathers arrays from a stock, which must outlive it. One thread. Takes 48 bytes for each 4 KiB of the
// largest array (304 for `classes`).
class NoiseArray final : private Crc32Source {
 public:
  explicit NoiseArray(const NoiseStock& stock) : stock_(stock) {}

  // Makes the array of `stream`, cut to `bytes` bytes, with its checksums. Arrays of two streams never have
  // the same 4 KiB, at any offset in a file. Starts at a random block of the stock and wraps around as often
  // as needed. Valid until the next call.
  const FieldBytes& make(const RandomStream& stream, uint64_t bytes);

  // Moments of the elements [begin, end) of the last array. Takes one step per block. Only for `floats`.
  Moments moments(uint64_t begin, uint64_t end) const;

 private:
  uint32_t crc32() const override;

  const NoiseStock& stock_;
  size_t first_block_ = 0;
  std::vector<std::byte> stamps_;
  std::vector<std::span<const std::byte>> pieces_;
  FieldBytes field_;
};

}  // namespace penstock
