#include "datagen/codec/jpeg_intervals.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <iterator>
#include <string>
#include <utility>

namespace penstock {
namespace {

constexpr std::uint8_t kStartOfImage = 0xd8;
constexpr std::uint8_t kEndOfImage = 0xd9;
constexpr std::uint8_t kBaselineFrame = 0xc0;
constexpr std::uint8_t kHuffmanTables = 0xc4;
constexpr std::uint8_t kStartOfScan = 0xda;
constexpr std::uint8_t kRestartInterval = 0xdd;
constexpr std::uint8_t kFirstRestart = 0xd0;
constexpr std::uint8_t kLastRestart = 0xd7;

Error not_ours(std::size_t at, const char* what) {
  return make_error(Errc::corrupt,
                    "not a JPEG of Penstock's encoder: at byte " + std::to_string(at) + " " + what);
}

std::uint8_t octet(std::span<const std::byte> bytes, std::size_t at) {
  return std::to_integer<std::uint8_t>(bytes[at]);
}

// Offset of the next 0xFF; bytes.size() if there is none.
std::size_t find_ff(std::span<const std::byte> bytes, std::size_t from) {
  const void* const found = std::memchr(bytes.data() + from, 0xff, bytes.size() - from);
  return found == nullptr ? bytes.size()
                          : static_cast<std::size_t>(static_cast<const std::byte*>(found) - bytes.data());
}

// Calls visit(marker, payload, offset of the payload) for each segment up to the start of the scan. Returns
// the offset of the entropy-coded bytes.
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

using Symbol = JpegCodes::Symbol;
using HuffmanTable = JpegCodes::Table;

// Bytes after the interval's bits, which at() may read. All their bits are 1, which is no Huffman code.
constexpr std::size_t kPadding = 2 * sizeof(std::uint64_t);

// The most bits of one skip: the number after the last code may have up to 16 bits.
constexpr std::size_t kFurthestSkip = JpegCodes::kSkipBits + 16;
constexpr const char* kCannotBeDecoded = "begins an interval that cannot be decoded";

// The bits of an interval without the zeros that are stuffed after 0xFF, and the original offset of each
// byte.
class Bits {
 public:
  Bits(std::span<const std::byte> jpeg, const JpegInterval& interval) : begin_(interval.begin) {
    const std::span<const std::byte> coded = jpeg.subspan(interval.begin, interval.bytes);
    bytes_.resize(interval.bytes + kPadding);
    std::size_t count = 0;
    for (std::size_t at = 0; at < coded.size();) {
      const std::size_t marker = find_ff(coded, at);
      const std::size_t run = std::min(marker + 1, coded.size()) - at;
      std::memcpy(bytes_.data() + count, coded.data() + at, run);
      count += run;
      at += run + 1;
      if (marker < coded.size()) stuffed_.push_back(count);
    }
    size_ = count * 8;
    std::fill_n(bytes_.begin() + static_cast<std::ptrdiff_t>(count), kPadding, std::uint8_t{0xff});
  }

  // At least 57 bits from `position` on; the first one is the highest bit.
  std::uint64_t at(std::size_t position) const {
    std::uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + position / 8, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    return word << (position % 8);
  }
  std::size_t size() const { return size_; }

  // The JPEG's byte that has the bit at `position`. Positions must not decrease from call to call.
  FlippableBit bit(std::size_t position) {
    while (passed_ < stuffed_.size() && stuffed_[passed_] <= position / 8) ++passed_;
    return {begin_ + position / 8 + passed_, static_cast<std::uint8_t>(0x80U >> (position % 8))};
  }

 private:
  const std::size_t begin_;
  std::vector<std::uint8_t> bytes_;
  std::vector<std::size_t> stuffed_;  // for each stuffed zero: how many bytes of `bytes_` are before it
  std::size_t passed_ = 0;
  std::size_t size_ = 0;
};

bool may_flip(std::span<const std::byte> jpeg, const FlippableBit& bit) {
  const std::uint8_t here = octet(jpeg, bit.at);
  return here != 0xff && (here ^ bit.mask) != 0xff;
}

// Selects bits for the groups. Bits are offered in the order of their positions.
class BitSelector {
 public:
  explicit BitSelector(FlipGroups groups) : groups_(groups) {}

  // It accepts no bit before this position.
  std::size_t from() const { return from_; }

  void offer(const FlippableBit& bit, std::size_t position) {
    const std::size_t byte = position / 8;
    if (of_group_ != 0 && byte >= first_ + groups_.within) {
      close();
      if (position < from_) return;
    }
    if (of_group_ == 0) first_ = byte;
    taken_.push_back(bit);
    from_ = (byte + 1) * 8;
    if (++of_group_ == groups_.together) close();
  }

  std::vector<FlippableBit> taken() && { return std::move(taken_); }

 private:
  void close() {
    of_group_ = 0;
    from_ = std::max(from_, (first_ + groups_.spacing) * 8);
  }

  const FlipGroups groups_;
  std::vector<FlippableBit> taken_;
  std::size_t from_ = 0;
  std::size_t first_ = 0;     // first byte of the current group
  std::size_t of_group_ = 0;  // bits taken for the current group
};

// `value` has the zeros before a coefficient and the size of its number; for a DC difference only the size.
Symbol symbol_of(std::uint8_t value, std::size_t code_bits) {
  constexpr std::uint8_t kSixteenZeros = 0xf0;
  const auto size = static_cast<std::uint8_t>(value & 15U);
  const bool ends = size == 0 && value != kSixteenZeros;
  return {.bits = static_cast<std::uint8_t>(code_bits + size),
          .size = size,
          .ahead = static_cast<std::uint8_t>(ends ? JpegCodes::kEndOfBlock : (value >> 4U) + 1U)};
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
  for (std::size_t at = find_ff(jpeg, layout.header_bytes); at + 1 < jpeg.size();
       at = find_ff(jpeg, at + 1)) {
    if (octet(jpeg, at + 1) == 0) continue;
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

Result<std::vector<std::byte>> header_without_restarts(std::span<const std::byte> jpeg) {
  std::vector<std::byte> header{std::byte{0xff}, std::byte{kStartOfImage}};
  PENSTOCK_TRY(for_each_segment(
      jpeg, [&](std::uint8_t marker, std::span<const std::byte> payload, std::size_t where) -> Result<void> {
        constexpr std::size_t kSegmentHead = 4;
        const auto segment = jpeg.subspan(where - kSegmentHead, kSegmentHead + payload.size());
        if (marker != kRestartInterval) header.insert(header.end(), segment.begin(), segment.end());
        return success();
      }));
  return header;
}

Result<void> JpegCodes::read_tables(std::span<const std::byte> payload, std::size_t where) {
  std::size_t at = 0;
  while (at < payload.size()) {
    const std::uint8_t which = octet(payload, at);
    if ((which & 0x0fU) > 1 || (which >> 4U) > 1 || payload.size() - at < 17)
      return not_ours(where + at, "is a Huffman table out of range");
    HuffmanTable& table = (which >> 4U) == 0 ? dc_[which & 1U] : ac_[which & 1U];
    table.by_16.assign(65536, {});
    const std::span<const std::byte> counts = payload.subspan(at + 1, 16);
    at += 17;
    // Codes are in rising order of length (ITU-T T.81, annex C), so their first 16 bits rise as well.
    std::size_t next = 0;
    for (std::size_t length = 1; length <= 16; ++length) {
      const std::size_t covers = std::size_t{1} << (16 - length);
      for (std::size_t i = 0; i < octet(counts, length - 1); ++i, next += covers) {
        if (at == payload.size() || next + covers > table.by_16.size())
          return not_ours(where + at, "is a Huffman table that makes no sense");
        std::fill_n(table.by_16.begin() + static_cast<std::ptrdiff_t>(next), covers,
                    symbol_of(octet(payload, at++), length));
      }
    }
    for (std::size_t i = 0; i < table.by_10.size(); ++i) {
      const Symbol symbol = table.by_16[i << 6U];
      table.by_10[i] = symbol.bits - symbol.size <= 10 ? symbol : Symbol{};
    }
  }
  return success();
}

Result<JpegCodes> JpegCodes::of(std::span<const std::byte> header) {
  JpegCodes codes;
  PENSTOCK_TRY(for_each_segment(
      header,
      [&](std::uint8_t marker, std::span<const std::byte> payload, std::size_t where) -> Result<void> {
        return marker == kHuffmanTables ? codes.read_tables(payload, where) : success();
      }));
  for (const std::size_t which : {0U, 1U})
    if (codes.dc_[which].by_16.empty() || codes.ac_[which].by_16.empty())
      return not_ours(header.size(), "the header ends without all Huffman tables");
  for (const std::size_t which : {0U, 1U}) {
    fill_skips(codes.dc_[which], true, codes.ac_[which]);
    fill_skips(codes.ac_[which], false, codes.ac_[which]);
  }
  codes.find_fillings();
  return codes;
}

// For each n from 1 to 7 finds the shortest sequence of coefficients whose codes have n bits, or n + 8 or
// n + 16. Uses coefficients of one quantization step at low frequencies: they have the shortest codes.
void JpegCodes::find_fillings() {
  constexpr unsigned kFurthest = 4;  // zeros before a coefficient, plus 1
  constexpr unsigned kMostBits = 24;
  std::vector<Word> short_coefficients;
  const std::vector<Symbol>& symbols = ac_[1].by_16;
  for (std::size_t next = 0; next < symbols.size();) {
    const Symbol symbol = symbols[next];
    if (symbol.bits == 0) break;  // codes rise: no further one exists
    const unsigned code_bits = symbol.bits - symbol.size;
    const auto code = static_cast<std::uint32_t>(next >> (16U - code_bits));
    if (symbol.ahead >= kEndOfBlock) end_of_block_ = {code, code_bits};
    if (symbol.size == 1 && symbol.ahead <= kFurthest)
      short_coefficients.push_back({code << 1U | 1U, code_bits + 1});
    next += std::size_t{1} << (16U - code_bits);
  }
  std::array<Word, kMostBits + 1> shortest{};  // the row for each exact number of bits
  std::array<bool, kMostBits + 1> known{true};
  for (unsigned count = 0; count <= kMostBits; ++count) {
    if (!known[count]) continue;
    if (count > 0 && paddings_[count % 8].count == 0 && count % 8 != 0)
      paddings_[count % 8] = shortest[count];
    for (const Word& coefficient : short_coefficients) {
      const unsigned longer = count + coefficient.count;
      if (longer > kMostBits || known[longer]) continue;
      known[longer] = true;
      shortest[longer] = {shortest[count].bits << coefficient.count | coefficient.bits, longer};
    }
  }
}

// `first` has the table of the first symbol, `ac` the table of those after it.
void JpegCodes::fill_skips(Table& first, bool is_dc, const Table& ac) {
  for (std::size_t next = 0; next < first.skips.size(); ++next) {
    Skip skip;
    bool ended = false;
    while (!ended && skip.bits < kSkipBits) {
      const bool of_first = skip.bits == 0;
      const Symbol symbol = (of_first ? first : ac).by_16[(next << (16 - kSkipBits + skip.bits)) & 0xffffU];
      const unsigned code_bits = symbol.bits - symbol.size;
      if (symbol.bits == 0 || skip.bits + code_bits > kSkipBits) break;
      skip.bits = static_cast<std::uint8_t>(skip.bits + symbol.bits);
      skip.ahead = static_cast<std::uint8_t>(skip.ahead + (of_first && is_dc ? 1U : symbol.ahead));
      ended = skip.ahead >= kEndOfBlock;
    }
    first.skips[next] = skip;
  }
}

Result<IntervalBits> JpegCodes::find(std::span<const std::byte> jpeg, const JpegInterval& interval,
                                     std::size_t units, FlipGroups groups) const {
  if (jpeg.size() > UINT32_MAX || interval.bytes > jpeg.size() ||
      interval.begin > jpeg.size() - interval.bytes)
    return not_ours(jpeg.size(), "the interval is cut short");
  Bits bits(jpeg, interval);
  BitSelector selector(groups);
  // The end of a block is unpredictable, so there is no branch on it: the next table is looked up.
  constexpr std::size_t kBlocks = 6;  // blocks of a coding unit: four of luma, then one of each colour
  std::array<const Table*, 2 * kBlocks> tables{};
  for (std::size_t block = 0; block < kBlocks; ++block) {
    tables[2 * block] = &dc_[block < 4 ? 0 : 1];
    tables[2 * block + 1] = &ac_[block < 4 ? 0 : 1];
  }
  std::size_t position = 0;
  std::size_t block = 0;
  unsigned coefficient = 0;  // coefficients of the current block that are decoded
  for (std::size_t left = units * kBlocks; left != 0;) {
    const bool is_dc = coefficient == 0;
    const Table& table = *tables[2 * block + (is_dc ? 0 : 1)];
    const std::uint64_t next = bits.at(position);
    const Skip skip = table.skips[next >> (64 - kSkipBits)];
    Symbol symbol;
    // Far before the next wanted bit, and if the block cannot become full, it skips several symbols at once.
    if (position + kFurthestSkip <= selector.from() && skip.bits != 0 &&
        coefficient + skip.ahead % kEndOfBlock < 64) {
      position += skip.bits;
      coefficient += skip.ahead;
    } else {
      symbol = table.find(next);
      if (symbol.bits == 0) return not_ours(interval.begin, kCannotBeDecoded);
      position += symbol.bits;
      coefficient = is_dc ? 1 : coefficient + symbol.ahead;
    }
    if (position > bits.size() || (coefficient > 64 && coefficient < kEndOfBlock))
      return not_ours(interval.begin, kCannotBeDecoded);
    if (position > selector.from() && !is_dc && symbol.size >= 2) {
      const FlippableBit bit = bits.bit(position - 1);
      if (may_flip(jpeg, bit)) selector.offer(bit, position - 1);
    }
    const bool ended = coefficient >= 64;
    coefficient = ended ? 0 : coefficient;
    left -= ended ? 1 : 0;
    block = block + (ended ? 1 : 0) == kBlocks ? 0 : block + (ended ? 1 : 0);
  }
  return IntervalBits{std::move(selector).taken(), bits.size() - position};
}

namespace {

// The last bits of an interval. It removes the zeros that are stuffed after 0xFF and inserts them again.
class Tail {
 public:
  explicit Tail(std::vector<std::byte>& coded) : coded_(coded) {
    while (count_ + 8 <= kBits && !coded_.empty()) take();
  }

  unsigned count() const { return count_; }
  std::uint64_t last(unsigned count) const { return bits_ & ((std::uint64_t{1} << count) - 1); }

  void drop(unsigned count) {
    bits_ >>= count;
    count_ -= count;
  }
  void add(std::uint64_t bits, unsigned count) {
    bits_ = bits_ << count | bits;
    count_ += count;
  }
  // Writes back all whole bytes.
  void put_back() {
    while (count_ >= 8) {
      count_ -= 8;
      coded_.push_back(static_cast<std::byte>(bits_ >> count_ & 0xffU));
      if (coded_.back() == std::byte{0xff}) coded_.push_back(std::byte{});
    }
  }

 private:
  static constexpr unsigned kBits = 32;

  void take() {
    const auto pop = [&] {
      const std::byte last = coded_.back();
      coded_.pop_back();
      return last;
    };
    std::byte last = pop();
    if (last == std::byte{} && !coded_.empty() && coded_.back() == std::byte{0xff}) last = pop();
    bits_ |= std::to_integer<std::uint64_t>(last) << count_;
    count_ += 8;
  }

  std::vector<std::byte>& coded_;
  std::uint64_t bits_ = 0;
  unsigned count_ = 0;
};

}  // namespace

Result<void> JpegCodes::fill_last_byte(std::vector<std::byte>& coded, std::size_t padding) const {
  if (padding == 0) return success();
  if (padding >= paddings_.size())
    return not_ours(coded.size(), "ends an interval that is padded with bytes");
  const Word& filling = paddings_[padding];
  if (filling.count == 0 || end_of_block_.count == 0)
    return not_ours(0, "begins with Huffman tables that cannot fill a byte");
  const std::size_t end = coded.size();
  Tail tail(coded);
  const bool ends =
      tail.count() >= padding + end_of_block_.count &&
      (tail.last(static_cast<unsigned>(padding) + end_of_block_.count) >> padding) == end_of_block_.bits;
  if (ends) {
    tail.drop(static_cast<unsigned>(padding) + end_of_block_.count);
    tail.add(filling.bits, filling.count);
    tail.add(end_of_block_.bits, end_of_block_.count);
  }
  tail.put_back();
  return ends ? success() : not_ours(end, "ends an interval whose last block has no end of its own");
}

}  // namespace penstock
