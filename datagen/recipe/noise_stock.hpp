// Makes arrays of noise as fast as memory can be read. A stock of a few MiB is made once, and arrays are
// joined from its blocks. Each block in an array begins with a stamp: a few random elements. The stamps make
// every 4 KiB of a data set different from all others.
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
  bytes,    // u8, like a medical scan: neighbours are similar; 7 bits of information per element
  floats,   // f32, mean 0, deviation about 0.8, equal power in each octave from 1 to 2048 elements
  classes,  // f32, each 0, 1 or 2, in runs of equal values, like a segmentation
};

// Statistics of some elements of the kind `floats`. They are exact, except that sums are rounded.
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

// The blocks from which arrays are joined. A seed gives the same stock on every machine. The stock is
// immutable, so any thread may use it. Making it takes about 30 ms of processor time and 8 MiB of memory;
// throws std::bad_alloc if memory runs out.
class NoiseStock {
 public:
  static constexpr size_t kBlockBytes = 4096;
  static constexpr size_t kStockBytes = size_t{8} << 20U;
  static constexpr size_t kBlockCount = kStockBytes / kBlockBytes;

  // threads = 0: as many as there are processors
  NoiseStock(Noise kind, uint64_t seed, unsigned threads = 0);

  // The size of a stamp. A block consists of a stamp and a body.
  size_t stamp_bytes() const { return stamp_bytes_; }
  std::span<const std::byte> body(size_t block) const {
    return std::span(bytes_).subspan(block * kBlockBytes + stamp_bytes_, kBlockBytes - stamp_bytes_);
  }
  // Continues a checksum: `crc` is the checksum of some bytes, and the result is that of the same bytes
  // followed by the body of `block`.
  uint32_t crc32c_with_body(uint32_t crc, size_t block) const {
    return body_crc32c_shift_.combine(crc, body_crc32cs_[block]);
  }
  uint32_t crc32_with_body(uint32_t crc, size_t block) const {
    return body_crc32_shift_.combine(crc, body_crc32s_[block]);
  }
  // The moments of the body of `block`. Only for `floats`.
  const Moments& moments(size_t block) const { return body_moments_[block]; }
  // The moments of the whole stock. Only for `floats`. min_value and max_value also allow for all possible
  // stamps: no element of an array is outside this range.
  Moments moments() const;
  // Writes stamp number `n` of an array to `out`. In the array, the stamp replaces the start of `block`. Its
  // elements are valid for the kind of noise. For `bytes` and `floats` they are also similar to those that
  // they replace. They contain at least 64 random bits of `stamps`.
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

// Makes arrays by joining blocks of a stock, which must outlive it. Only one thread at a time may use it.
// Takes 48 bytes of memory for each 4 KiB of the largest array (288 for `classes`).
class NoiseArray final : private Crc32Source {
 public:
  explicit NoiseArray(const NoiseStock& stock) : stock_(stock) {}

  // Makes an array of `bytes` bytes from the random numbers of `stream`, and its CRC32C. The array begins
  // with a random block of the stock. The next blocks follow in the order of the stock, which begins again
  // after its last block. Arrays of two streams never contain the same 4 KiB, at whatever offset in each
  // array. The result is valid until the next call.
  const FieldBytes& make(const RandomStream& stream, uint64_t bytes);

  // The moments of the elements [begin, end) of the last array that was made. Its time grows
  // with the number of blocks in this range, not with the number of elements. Only for `floats`.
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
