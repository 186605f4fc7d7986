// What lies where in a baseline JPEG of our encoder: its header and its restart intervals, each of which can
// be decoded without the others; the bits in them that may be flipped; and what it takes that they can follow
// each other without a marker between them.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

struct JpegInterval {
  std::size_t begin = 0;  // its entropy-coded bytes, the restart marker behind them left out
  std::size_t bytes = 0;
};

struct JpegLayout {
  std::size_t header_bytes = 0;  // up to the first interval
  std::size_t height_at = 0;     // the two bytes (high first) that say how many lines the picture has
  std::vector<JpegInterval> intervals;
};

// `corrupt` for what our encoder does not write: no baseline JPEG, several scans.
Result<JpegLayout> jpeg_layout(std::span<const std::byte> jpeg);

// The header (more may follow) of a picture that is one interval: without the segment that says how long they
// are.
Result<std::vector<std::byte>> header_without_restarts(std::span<const std::byte> jpeg);

// A bit that may be flipped, and the JPEG stays valid and as long: the lowest bit of a coefficient that is at
// least 2, so that the picture changes by one quantization step in one wave. Never in a byte that is or
// would become 0xFF.
struct FlippableBit {
  std::size_t at = 0;  // byte of the JPEG
  std::uint8_t mask = 0;
};

// Which of such bits are wanted: in each `spacing` bytes the first `together` that lie within `within` bytes,
// at most one of a byte (two could make 0xFF of it together). Those of a group are in one cache line or two.
struct FlipGroups {
  std::size_t spacing = 0;
  std::size_t together = 0;
  std::size_t within = 0;
};

// What was found in an interval.
struct IntervalBits {
  std::vector<FlippableBit> flippable;  // in order
  std::size_t padding = 0;              // bits behind the last code
};

// The codes of pictures of 4:2:0 and three components that have the same Huffman tables. Immutable.
class JpegCodes {
 public:
  // `header`: the picture's bytes up to its first interval (more may follow). `corrupt` where tables are
  // missing.
  static Result<JpegCodes> of(std::span<const std::byte> header);

  // `units` is how many coding units (MCUs) the interval holds; `corrupt` where it does not.
  Result<IntervalBits> find(std::span<const std::byte> jpeg, const JpegInterval& interval, std::size_t units,
                            FlipGroups groups) const;

  // Makes an interval end with a whole byte: in the place of so much padding, and of up to three bytes more,
  // come waves of one quantization step in its last block, which is to have none (a colour's; `corrupt` where
  // it has). What stands behind is then decoded as if it stood there alone, without a marker between, as far
  // as the interval's last DC values are zero.
  Result<void> fill_last_byte(std::vector<std::byte>& coded, std::size_t padding) const;

  // What 16 bits begin with: a Huffman code and, after it, a number.
  struct alignas(4) Symbol {
    std::uint8_t bits = 0;   // of both; 0 is no code
    std::uint8_t size = 0;   // bits of the number
    std::uint8_t ahead = 0;  // coefficients up to and with this one; kEndOfBlock and more: none follows
  };
  static constexpr unsigned kEndOfBlock = 128;
  // As many symbols as begin within kSkipBits bits of a block: at least one, or none where a code is longer.
  struct alignas(2) Skip {
    std::uint8_t bits = 0;   // of all
    std::uint8_t ahead = 0;  // coefficients, and kEndOfBlock more where the last of them ends the block
  };
  static constexpr unsigned kSkipBits = 11;
  struct Table {
    std::vector<Symbol> by_16;         // by the next 16 bits; empty: no such table
    std::array<Symbol, 1024> by_10{};  // codes of up to 10 bits, which nearly all are: this fits a cache
    std::array<Skip, 1U << kSkipBits> skips{};
    Symbol find(std::uint64_t next_64) const {
      const Symbol symbol = by_10[next_64 >> 54U];
      if (symbol.bits == 0) [[unlikely]]
        return by_16[next_64 >> 48U];
      return symbol;
    }
  };

 private:
  // A code, the number after it included.
  struct Word {
    std::uint32_t bits = 0;
    unsigned count = 0;
  };

  JpegCodes() = default;
  static void fill_skips(Table& first, bool direct, const Table& ac);
  Result<void> read_tables(std::span<const std::byte> payload, std::size_t where);
  void find_fillings();

  std::array<Table, 2> dc_;  // luma, colour
  std::array<Table, 2> ac_;
  Word end_of_block_;  // of a colour's block
  std::array<Word, 8>
      fillings_;  // waves whose codes have that many bits, or a byte or two more; none: no codes
};

}  // namespace penstock
