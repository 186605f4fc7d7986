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
  std::size_t begin = 0;  // offset of its entropy-coded bytes
  std::size_t bytes = 0;  // their number, without the restart marker after them
};

struct JpegLayout {
  std::size_t header_bytes = 0;  // bytes before the first interval
  std::size_t height_at = 0;     // offset of the two bytes (high first) with the picture's height
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
  std::size_t at = 0;  // offset of the byte in the JPEG
  std::uint8_t mask = 0;
};

// Selects flippable bits. In each `spacing` bytes it takes the first `together` bits that are within `within`
// bytes of each other, at most one bit of a byte: two flips could make 0xFF. So a group is in one or two
// cache lines.
struct FlipGroups {
  std::size_t spacing = 0;
  std::size_t together = 0;
  std::size_t within = 0;
};

// The result of find() for one interval.
struct IntervalBits {
  std::vector<FlippableBit> flippable;  // in the order of their offsets
  std::size_t padding = 0;              // bits after the last code
};

// The Huffman codes of 4:2:0 pictures with three components and the same tables. Immutable, so any thread may
// use it.
class JpegCodes {
 public:
  // `header` has the picture's bytes before its first interval; more may follow. `corrupt` if tables are
  // missing.
  static Result<JpegCodes> of(std::span<const std::byte> header);

  // `units` is the number of coding units (MCUs) in the interval; `corrupt` if it has another number.
  Result<IntervalBits> find(std::span<const std::byte> jpeg, const JpegInterval& interval, std::size_t units,
                            FlipGroups groups) const;

  // Makes an interval end with a whole byte. It replaces the `padding` bits by coefficients of one
  // quantization step in the interval's last block. The interval gets up to three bytes longer.
  // That block must be a colour block without coefficients after the first (else `corrupt`). Then another
  // interval can follow without a marker. It is decoded correctly if the last DC values of this interval are
  // zero.
  Result<void> fill_last_byte(std::vector<std::byte>& coded, std::size_t padding) const;

  // A Huffman code and the number after it, for a table that is indexed by the next bits.
  struct alignas(4) Symbol {
    std::uint8_t bits = 0;   // of the code and the number; 0: no code
    std::uint8_t size = 0;   // bits of the number alone
    std::uint8_t ahead = 0;  // coefficients up to and with this one; kEndOfBlock or more: the block ends
  };
  static constexpr unsigned kEndOfBlock = 128;
  // The symbols whose codes are within the next kSkipBits bits, to skip them together. At least one symbol;
  // none if a code is longer.
  struct alignas(2) Skip {
    std::uint8_t bits = 0;   // of all these symbols
    std::uint8_t ahead = 0;  // coefficients; plus kEndOfBlock if the last symbol ends the block
  };
  static constexpr unsigned kSkipBits = 11;
  struct Table {
    std::vector<Symbol> by_16;  // indexed by the next 16 bits; empty: the table does not exist
    // Codes of up to 10 bits, which are nearly all; small enough for the first cache.
    std::array<Symbol, 1024> by_10{};
    std::array<Skip, 1U << kSkipBits> skips{};
    Symbol find(std::uint64_t next_64) const {
      const Symbol symbol = by_10[next_64 >> 54U];
      if (symbol.bits == 0) [[unlikely]]
        return by_16[next_64 >> 48U];
      return symbol;
    }
  };

 private:
  // A code with the number after it.
  struct Word {
    std::uint32_t bits = 0;
    unsigned count = 0;
  };

  JpegCodes() = default;
  static void fill_skips(Table& first, bool is_dc, const Table& ac);
  Result<void> read_tables(std::span<const std::byte> payload, std::size_t where);
  void find_fillings();

  std::array<Table, 2> dc_;  // luma, colour
  std::array<Table, 2> ac_;
  Word end_of_block_;  // of a colour block
  // [n], n = 1 to 7: the shortest sequence of coefficients with n, n + 8 or n + 16 bits. fill_last_byte()
  // puts it in place of n padding bits. Count 0: the tables allow none.
  std::array<Word, 8> paddings_;
};

}  // namespace penstock
