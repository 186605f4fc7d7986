// Analyses baseline JPEGs that Penstock's encoder has made; strip_stock.hpp makes new pictures from their
// parts. Finds the header and the restart intervals, each of which can be decoded alone. Finds bits that may
// be flipped to make a picture different. Also fills the last byte of an interval, so that another interval
// can follow without a marker.
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
  size_t bytes = 0;  // number of these bytes; the restart marker after them is not counted
};

struct JpegLayout {
  size_t header_bytes = 0;   // bytes before the first interval
  size_t height_offset = 0;  // offset of the two bytes (high first) with the picture's height
  std::vector<JpegInterval> intervals;
};

// Finds the header and the intervals of a picture. `corrupt` if it is not baseline or has several scans,
// since Penstock's encoder does not write such pictures.
Result<JpegLayout> jpeg_layout(std::span<const std::byte> jpeg);

// Returns the header of `jpeg`, changed for a picture that is a single interval: the segment that gives the
// length of intervals is left out. `jpeg` may have more bytes after its header.
Result<std::vector<std::byte>> header_without_restarts(std::span<const std::byte> jpeg);

// A bit that may be flipped: the JPEG then stays valid and has the same length. It is the lowest bit of an AC
// coefficient of absolute value 2 or more. So a flip changes the picture by one quantization step in one
// frequency. The byte that contains the bit is not 0xFF, neither before nor after the flip.
struct FlippableBit {
  size_t offset = 0;  // offset of the byte in the JPEG
  uint8_t mask = 0;
};

// Rules that select some of the flippable bits, in groups. A group has at most `bits_per_group` successive
// flippable bits. They are within `span_bytes` bytes, and so in one or two cache lines. Groups begin at least
// `spacing_bytes` bytes apart. At most one bit of a byte is selected, because two flips could make the byte
// 0xFF.
struct FlipGroups {
  size_t spacing_bytes = 0;
  size_t bits_per_group = 0;
  size_t span_bytes = 0;
};

// The result of find_bits() for one interval.
struct IntervalBits {
  std::vector<FlippableBit> flippable;  // in the order of their offsets
  size_t padding_bits = 0;              // unused bits between the last code and the end of its byte
};

// The Huffman codes that the header of a picture defines. They are also valid for other 4:2:0 pictures with
// three components, if their headers have the same tables. Immutable, so any thread may use it.
class JpegCodes {
 public:
  // `header` has the picture's bytes before its first interval; more may follow. `corrupt` if tables are
  // missing.
  static Result<JpegCodes> from_header(std::span<const std::byte> header);

  // Finds the bits of one interval that may be flipped, and selects some of them by the rules in `groups`.
  // `corrupt` if the interval has fewer than `units` coding units (MCUs). If it has more, the bits of the
  // others are counted as padding bits.
  Result<IntervalBits> find_bits(std::span<const std::byte> jpeg, const JpegInterval& interval, size_t units,
                                 FlipGroups groups) const;

  // Makes an interval end with a whole byte, so that another interval can follow without a marker. To do so,
  // it replaces the `padding_bits` unused bits at the end of `coded` by coefficients in the last block. Each
  // changes the picture by one quantization step. The interval becomes up to three bytes longer.
  // The last block must be a colour block that ends after its first coefficient. `corrupt` if it does not end
  // with the code for the end of a block. The next interval is decoded correctly only if the last DC values
  // of this interval are zero.
  Result<void> fill_last_byte(std::vector<std::byte>& coded, size_t padding_bits) const;

  // An entry of a table whose index is the next bits of a picture. It describes the Huffman code at the
  // beginning of these bits, and the number that follows the code.
  struct alignas(4) Symbol {
    uint8_t bits = 0;         // number of bits of the code and the number; 0: there is no code
    uint8_t number_bits = 0;  // number of bits of the number alone
    // How many coefficients this symbol decodes: the zeros and the coefficient after them. kEndOfBlock or
    // more: the symbol ends the block.
    uint8_t coefficients = 0;
  };
  static constexpr unsigned kEndOfBlock = 128;
  // The symbols that can be skipped at once: their codes are completely in the next kSkipBits bits. `bits` is
  // 0 if even the first code is longer.
  struct alignas(2) Skip {
    uint8_t bits = 0;  // number of bits of all these symbols
    // number of their coefficients; plus kEndOfBlock if the last symbol ends the block
    uint8_t coefficients = 0;
  };
  static constexpr unsigned kSkipBits = 11;
  struct Table {
    std::vector<Symbol> by_16_bits;  // indexed by the next 16 bits; empty: the table does not exist
    // Indexed by the next 10 bits. Nearly all codes have at most 10 bits, and this table is small enough for
    // the first-level cache. Longer codes are in by_16_bits.
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
  // A sequence of bits: the low `bit_count` bits of `bits`. It is a code, or several codes with their
  // numbers.
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
  // fill_last_byte() replaces n padding bits by it. Its bit_count is 0 if the tables allow no such sequence.
  std::array<BitString, 8> paddings_;
};

}  // namespace penstock
