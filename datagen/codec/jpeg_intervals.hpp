// Analyses baseline JPEGs of Penstock's encoder. Finds the header and the restart intervals, each of which
// can be decoded alone, and the bits that may be flipped. Also fills the end of intervals so that they can
// follow each other without a marker.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

struct JpegInterval {
  size_t begin = 0;  // offset of the entropy-coded bytes
  size_t bytes = 0;  // number of these bytes, without the restart marker after them
};

struct JpegLayout {
  size_t header_bytes = 0;   // bytes before the first interval
  size_t height_offset = 0;  // offset of the two bytes (high first) with the picture's height
  std::vector<JpegInterval> intervals;
};

// `corrupt` for pictures that Penstock's encoder does not write: not baseline, or several scans.
Result<JpegLayout> jpeg_layout(std::span<const std::byte> jpeg);

// The header of a picture as one interval: without the segment that gives the length of intervals. `jpeg` may
// have more bytes after its header.
Result<std::vector<std::byte>> header_without_restarts(std::span<const std::byte> jpeg);

// A bit that may be flipped: the JPEG stays valid and has the same length. It is the lowest bit of a
// coefficient of at least 2, so the picture changes by one quantization step in one frequency. It is never
// in a byte that is or would become 0xFF.
struct FlippableBit {
  size_t offset = 0;  // offset of the byte in the JPEG
  uint8_t mask = 0;
};

// Which flippable bits to select. A group is the next flippable bits, at most `bits_per_group` and within
// `span_bytes` bytes, so it is in one or two cache lines. Between the beginnings of two groups are at least
// `spacing_bytes` bytes. A byte gives at most one bit, because two flips could make 0xFF.
struct FlipGroups {
  size_t spacing_bytes = 0;
  size_t bits_per_group = 0;
  size_t span_bytes = 0;
};

// The result of find_bits() for one interval.
struct IntervalBits {
  std::vector<FlippableBit> flippable;  // in the order of their offsets
  size_t padding_bits = 0;              // bits after the last code
};

// The Huffman codes of 4:2:0 pictures with three components and the same tables. Immutable, so any thread may
// use it.
class JpegCodes {
 public:
  // `header` has the picture's bytes before its first interval; more may follow. `corrupt` if tables are
  // missing.
  static Result<JpegCodes> from_header(std::span<const std::byte> header);

  // Finds the bits of one interval that may be flipped. `units` is its number of coding units (MCUs);
  // `corrupt` if the interval has a different number.
  Result<IntervalBits> find_bits(std::span<const std::byte> jpeg, const JpegInterval& interval, size_t units,
                                 FlipGroups groups) const;

  // Makes an interval end with a whole byte, so that another interval can follow without a marker. It
  // replaces the `padding_bits` bits by coefficients of one quantization step in the last block. The interval
  // gets up to three bytes longer. The last block must be a colour block without coefficients after the first
  // (else `corrupt`). The next interval is decoded correctly if the last DC values of this interval are zero.
  Result<void> fill_last_byte(std::vector<std::byte>& coded, size_t padding_bits) const;

  // A Huffman code and the number after it, for a table that is indexed by the next bits.
  struct alignas(4) Symbol {
    uint8_t bits = 0;         // bits of the code and the number; 0: no code
    uint8_t number_bits = 0;  // bits of the number alone
    // Coefficients that this symbol decodes, with the zeros before the last one. kEndOfBlock or more: the
    // block ends.
    uint8_t coefficients = 0;
  };
  static constexpr unsigned kEndOfBlock = 128;
  // The symbols whose codes are completely in the next kSkipBits bits. The decoder skips them at once. `bits`
  // is 0 if the first code is longer.
  struct alignas(2) Skip {
    uint8_t bits = 0;          // bits of all these symbols
    uint8_t coefficients = 0;  // of all these symbols; plus kEndOfBlock if the last one ends the block
  };
  static constexpr unsigned kSkipBits = 11;
  struct Table {
    std::vector<Symbol> by_16_bits;  // indexed by the next 16 bits; empty: the table does not exist
    // Nearly all codes have up to 10 bits. This table for them is small enough for the first-level cache.
    std::array<Symbol, 1024> by_10_bits{};
    std::array<Skip, 1U << kSkipBits> skips{};
    Symbol find(uint64_t next_64) const {
      const Symbol symbol = by_10_bits[next_64 >> 54U];
      if (symbol.bits == 0) [[unlikely]]
        return by_16_bits[next_64 >> 48U];
      return symbol;
    }
  };

 private:
  // The low `bit_count` bits of `bits`: a code, or a sequence of codes with their numbers.
  struct BitString {
    uint32_t bits = 0;
    unsigned bit_count = 0;
  };

  JpegCodes() = default;
  static void fill_skips(Table& first, bool is_dc, const Table& ac);
  Result<void> read_tables(std::span<const std::byte> payload, size_t offset);
  void find_paddings();

  std::array<Table, 2> dc_;  // [0]: luma, [1]: colour
  std::array<Table, 2> ac_;
  BitString end_of_block_;  // the code that ends a colour block
  // paddings_[n], for n from 1 to 7: the shortest sequence of coefficients with n, n + 8 or n + 16 bits.
  // fill_last_byte() puts it in place of n padding bits. bit_count is 0 if the tables allow no such sequence.
  std::array<BitString, 8> paddings_;
};

}  // namespace penstock
