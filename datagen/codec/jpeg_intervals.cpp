#include "datagen/codec/jpeg_intervals.hpp"

#include <algorithm>
#include <iterator>
#include <string>

namespace penstock {
namespace {

constexpr std::uint8_t kStartOfImage = 0xd8;
constexpr std::uint8_t kEndOfImage = 0xd9;
constexpr std::uint8_t kBaselineFrame = 0xc0;
constexpr std::uint8_t kHuffmanTables = 0xc4;
constexpr std::uint8_t kStartOfScan = 0xda;
constexpr std::uint8_t kFirstRestart = 0xd0;
constexpr std::uint8_t kLastRestart = 0xd7;

Error not_ours(std::size_t at, const char* what) {
  return make_error(Errc::corrupt,
                    "not a JPEG of Penstock's encoder: at byte " + std::to_string(at) + " " + what);
}

std::uint8_t octet(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}

// Calls visit(marker, its payload, where that begins) for each segment up to the scan's; returns where the
// entropy-coded bytes begin.
template <class Visit>
Result<std::size_t> for_each_segment(std::span<const std::byte> jpeg, Visit visit) {
  if (jpeg.size() < 4 || octet(jpeg, 0) != 0xff || octet(jpeg, 1) != kStartOfImage)
    return not_ours(0, "is no start of an image");
  std::size_t at = 2;
  while (at + 4 <= jpeg.size()) {
    if (octet(jpeg, at) != 0xff) return not_ours(at, "is no marker");
    const std::uint8_t marker = octet(jpeg, at + 1);
    const std::size_t length = std::size_t{octet(jpeg, at + 2)} * 256 + octet(jpeg, at + 3);
    if (length < 2 || at + 2 + length > jpeg.size())
      return not_ours(at, "begins a segment that is cut short");
    PENSTOCK_TRY(visit(marker, jpeg.subspan(at + 4, length - 2), at + 4));
    at += 2 + length;
    if (marker == kStartOfScan) return at;
  }
  return not_ours(at, "the scan is missing");
}

using Symbol = FlippableBits::Symbol;
using HuffmanTable = FlippableBits::Table;

// The bits of an interval without the zeros that are stuffed behind 0xFF, and where each byte comes from.
class Bits {
 public:
  Bits(std::span<const std::byte> jpeg, const JpegInterval& interval) {
    constexpr std::size_t kPadding = 4;  // of ones, as a JPEG's own
    bytes_.resize(interval.bytes + kPadding);
    origin_.resize(interval.bytes);
    const std::size_t end = interval.begin + interval.bytes;
    std::size_t count = 0;
    for (std::size_t at = interval.begin; at < end; ++at, ++count) {
      bytes_[count] = octet(jpeg, at);
      origin_[count] = static_cast<std::uint32_t>(at);
      if (bytes_[count] == 0xff) ++at;
    }
    size_ = count * 8;
    bytes_.resize(count + kPadding);
    std::fill(bytes_.end() - kPadding, bytes_.end(), std::uint8_t{0xff});
  }

  std::uint32_t next_16() const {
    const std::size_t at = position_ / 8;
    const std::uint32_t word = (std::uint32_t{bytes_[at]} << 16U) | (std::uint32_t{bytes_[at + 1]} << 8U) |
                               std::uint32_t{bytes_[at + 2]};
    return (word >> (8 - position_ % 8)) & 0xffffU;
  }
  // False where the interval ends before.
  bool skip(std::size_t count) {
    position_ += count;
    return position_ <= size_;
  }
  FlippableBit last() const {
    const std::size_t at = position_ - 1;
    return {origin_[at / 8], static_cast<std::uint8_t>(0x80U >> (at % 8))};
  }

 private:
  std::vector<std::uint8_t> bytes_;
  std::vector<std::uint32_t> origin_;
  std::size_t size_ = 0;
  std::size_t position_ = 0;
};

bool may_flip(std::span<const std::byte> jpeg, const FlippableBit& bit) {
  const std::uint8_t here = octet(jpeg, bit.at);
  return here != 0xff && (here ^ bit.mask) != 0xff;
}

// Calls found(bit) for the lowest bit of each of the block's AC coefficients of at least 2. False where the
// bits are no block.
template <class Found>
bool walk_block(const HuffmanTable& dc, const HuffmanTable& ac, Bits& bits, Found found) {
  const Symbol difference = dc.find(bits.next_16());
  if (difference.length == 0 || difference.value > 11) return false;
  if (!bits.skip(std::size_t{difference.length} + difference.value)) return false;
  for (unsigned position = 1; position < 64; ++position) {
    const Symbol symbol = ac.find(bits.next_16());
    const unsigned size = symbol.value & 15U;
    if (symbol.length == 0 || !bits.skip(symbol.length + size)) return false;
    if (size == 0 && symbol.value != 0xf0) return true;  // the rest of the block is zero
    position += symbol.value >> 4U;
    if (position > 63) return false;
    if (size >= 2) found(bits.last());
  }
  return true;
}

}  // namespace

Result<JpegLayout> jpeg_layout(std::span<const std::byte> jpeg) {
  JpegLayout layout;
  PENSTOCK_ASSIGN(layout.header_bytes,
                  for_each_segment(jpeg,
                                   [&](std::uint8_t marker, std::span<const std::byte> payload,
                                       std::size_t where) -> Result<void> {
                                     if (marker == kBaselineFrame && payload.size() >= 6)
                                       layout.height_at = where + 1;
                                     return success();
                                   }));
  if (layout.height_at == 0) return not_ours(0, "is no baseline picture");
  JpegInterval interval{layout.header_bytes, 0};
  for (std::size_t at = layout.header_bytes; at + 1 < jpeg.size(); ++at) {
    if (octet(jpeg, at) != 0xff || octet(jpeg, at + 1) == 0) continue;
    const std::uint8_t marker = octet(jpeg, at + 1);
    interval.bytes = at - interval.begin;
    layout.intervals.push_back(interval);
    if (marker == kEndOfImage) return layout;
    if (marker < kFirstRestart || marker > kLastRestart) return not_ours(at, "is a marker within the scan");
    interval.begin = at + 2;
    ++at;
  }
  return not_ours(jpeg.size(), "the end of the image is missing");
}

Result<void> FlippableBits::read_tables(std::span<const std::byte> payload, std::size_t where) {
  std::size_t at = 0;
  while (at < payload.size()) {
    const std::uint8_t which = octet(payload, at);
    if ((which & 0x0fU) > 1 || (which >> 4U) > 1 || payload.size() - at < 17)
      return not_ours(where + at, "is a Huffman table out of range");
    HuffmanTable& table = (which >> 4U) == 0 ? dc_[which & 1U] : ac_[which & 1U];
    table.by_16.assign(65536, {});
    const std::span<const std::byte> counts = payload.subspan(at + 1, 16);
    at += 17;
    std::size_t next =
        0;  // codes go up with their lengths (ITU-T T.81, annex C): so does what begins with them
    for (std::size_t length = 1; length <= 16; ++length) {
      const std::size_t covers = std::size_t{1} << (16 - length);
      for (std::size_t i = 0; i < octet(counts, length - 1); ++i, next += covers) {
        if (at == payload.size() || next + covers > table.by_16.size())
          return not_ours(where + at, "is a Huffman table that makes no sense");
        std::fill_n(table.by_16.begin() + static_cast<std::ptrdiff_t>(next), covers,
                    Symbol{octet(payload, at++), static_cast<std::uint8_t>(length)});
      }
    }
    for (std::size_t i = 0; i < table.by_10.size(); ++i) {
      const Symbol symbol = table.by_16[i << 6U];
      table.by_10[i] = symbol.length <= 10 ? symbol : Symbol{};
    }
  }
  return success();
}

Result<FlippableBits> FlippableBits::of(std::span<const std::byte> header) {
  FlippableBits bits;
  PENSTOCK_TRY(for_each_segment(
      header,
      [&](std::uint8_t marker, std::span<const std::byte> payload, std::size_t where) -> Result<void> {
        return marker == kHuffmanTables ? bits.read_tables(payload, where) : success();
      }));
  for (const std::size_t which : {0U, 1U})
    if (bits.dc_[which].by_16.empty() || bits.ac_[which].by_16.empty())
      return not_ours(header.size(), "the header ends without all Huffman tables");
  return bits;
}

Result<std::vector<FlippableBit>> FlippableBits::find(std::span<const std::byte> jpeg,
                                                      const JpegInterval& interval, std::size_t units,
                                                      std::size_t spacing) const {
  if (jpeg.size() > UINT32_MAX || interval.bytes > jpeg.size() ||
      interval.begin > jpeg.size() - interval.bytes)
    return not_ours(jpeg.size(), "the interval is cut short");
  std::vector<FlippableBit> found;
  std::size_t next = interval.begin;
  const auto look_at = [&](const FlippableBit& bit) {
    if (bit.at < next || !may_flip(jpeg, bit)) return;
    found.push_back(bit);
    next = bit.at + spacing;
  };
  Bits bits(jpeg, interval);
  for (std::size_t unit = 0; unit < units; ++unit) {
    for (std::size_t block = 0; block < 6; ++block) {  // four of luma, then both colours
      const std::size_t which = block < 4 ? 0 : 1;
      if (!walk_block(dc_[which], ac_[which], bits, look_at))
        return not_ours(interval.begin, "begins an interval that cannot be decoded");
    }
  }
  return found;
}

}  // namespace penstock
