// Analyses baseline JPEGs of Penstock's encoder, from whose parts strip_stock.hpp makes new pictures. Finds
// the header, the restart intervals, each of which can be decoded alone, and bits that may be flipped to make
// a picture different. Also fills the end of intervals so that they can follow each other without a marker.
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

// Finds the header and the intervals of a picture. `corrupt` if Penstock's encoder cannot have written it: it
// is not baseline, or has several scans.
Result<JpegLayout> jpeg_layout(std::span<const std::byte> jpeg);

// The header of `jpeg` for a picture that is a single interval: it lacks the segment that gives the length of
// intervals. `jpeg` may have more bytes after its header.
Result<std::vector<std::byte>> header_without_restarts(std::span<const std::byte> jpeg);

// A bit that may be flipped: the JPEG then stays valid and has the same length. It is the lowest bit of a
// coefficient of at least 2, so the picture changes by one quantization step in one frequency. It is never in
// a byte that is 0xFF or that the flip would make 0xFF.
struct FlippableBit {
  size_t offset = 0;  // offset of the byte in the JPEG
  uint8_t mask = 0;
};

// Rules that select some of the flippable bits, in groups. A group consists of successive flippable bits: at
// most `bits_per_group`, within `span_bytes` bytes, so that they are in one or two cache lines. Groups begin
// at least `spacing_bytes` bytes apart. At most one bit of a byte is selected, because two flips could make
// it 0xFF.
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

// The Huffman codes of a picture's header. They are valid for all 4:2:0 pictures with three components and
// the same tables. Immutable, so any thread may use it.
class JpegCodes {
 public:
  // `header` has the picture's bytes before its first interval; more may follow. `corrupt` if tables are
  // missing.
  static Result<JpegCodes> from_header(std::span<const std::byte> header);

  // Finds the bits of one interval that may be flipped, and selects some of them by the rules in `groups`.
  // `units` is the number of coding units (MCUs) in the interval; `corrupt` if it has a different number.
  Result<IntervalBits> find_bits(std::span<const std::byte> jpeg, const JpegInterval& interval, size_t units,
                                 FlipGroups groups) const;

  // Makes an interval end with a whole byte, so that another interval can follow without a marker. Replaces
  // the `padding_bits` unused bits at its end by coefficients of one quantization step in the last block. The
  // interval becomes up to three bytes longer. The last block must be a colour block that ends after its
  // first coefficient; `corrupt` if it does not end with the code for the end of a block. The next interval
  // is decoded correctly only if the last DC values of this interval are zero.
  Result<void> fill_last_byte(std::vector<std::byte>& coded, size_t padding_bits) const;

  // An entry of a table that is indexed by the next bits of a picture: the Huffman code at their beginning,
  // and the number that follows the code.
  struct alignas(4) Symbol {
    uint8_t bits = 0;         // number of bits of the code and the number; 0: there is no code
    uint8_t number_bits = 0;  // number of bits of the number alone
    // How many coefficients this symbol decodes: one, and the zeros before it. kEndOfBlock or more: the block
    // ends.
    uint8_t coefficients = 0;
  };
  static constexpr unsigned kEndOfBlock = 128;
  // The symbols whose codes are completely in the next kSkipBits bits, to be skipped at once. `bits` is 0 if
  // the first code is longer.
  struct alignas(2) Skip {
    uint8_t bits = 0;  // number of bits of all these symbols
    // their number of coefficients; plus kEndOfBlock if the last one ends the block
    uint8_t coefficients = 0;
  };
  static constexpr unsigned kSkipBits = 11;
  struct Table {
    std::vector<Symbol> by_16_bits;  // indexed by the next 16 bits; empty: the table does not exist
    // Indexed by the next 10 bits; for codes of up to 10 bits, which nearly all are. Small enough for the
    // first-level cache.
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
