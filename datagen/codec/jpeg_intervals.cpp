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

constexpr uint8_t kStartOfImage = 0xd8;
constexpr uint8_t kEndOfImage = 0xd9;
constexpr uint8_t kBaselineFrame = 0xc0;
constexpr uint8_t kHuffmanTables = 0xc4;
constexpr uint8_t kStartOfScan = 0xda;
constexpr uint8_t kRestartInterval = 0xdd;
constexpr uint8_t kFirstRestart = 0xd0;
constexpr uint8_t kLastRestart = 0xd7;

Error bad_jpeg(size_t at, const char* what) {
  return make_error(Errc::corrupt,
                    "not a JPEG of Penstock's encoder: at byte " + std::to_string(at) + " " + what);
}

uint8_t octet_at(std::span<const std::byte> bytes, size_t at) {
  return std::to_integer<uint8_t>(bytes[at]);
}

// Offset of the next 0xFF; bytes.size() if there is none.
size_t find_ff(std::span<const std::byte> bytes, size_t from) {
  const void* const found = std::memchr(bytes.data() + from, 0xff, bytes.size() - from);
  return found == nullptr ? bytes.size() : size_t(static_cast<const std::byte*>(found) - bytes.data());
}

// Calls visit(marker, payload, offset of the payload) for each segment of the header. Returns the offset of
// the entropy-coded bytes after the header.
template <class Visit>
Result<size_t> for_each_segment(std::span<const std::byte> jpeg, Visit visit) {
  if (jpeg.size() < 4 || octet_at(jpeg, 0) != 0xff || octet_at(jpeg, 1) != kStartOfImage)
    return bad_jpeg(0, "is not a start-of-image marker");
  size_t at = 2;
  while (at + 4 <= jpeg.size()) {
    if (octet_at(jpeg, at) != 0xff) return bad_jpeg(at, "is not a marker");
    const uint8_t marker = octet_at(jpeg, at + 1);
    const size_t length = size_t{octet_at(jpeg, at + 2)} * 256 + octet_at(jpeg, at + 3);
    if (length < 2 || at + 2 + length > jpeg.size()) return bad_jpeg(at, "a truncated segment starts");
    PENSTOCK_TRY(visit(marker, jpeg.subspan(at + 4, length - 2), at + 4));
    at += 2 + length;
    if (marker == kStartOfScan) return at;
  }
  return bad_jpeg(at, "the scan is missing");
}

using Symbol = JpegCodes::Symbol;
using HuffmanTable = JpegCodes::Table;

// Number of bytes that IntervalReader adds after an interval's own bytes, because at() reads 8 bytes at once.
// All bits of the added bytes are 1, which is no Huffman code.
constexpr size_t kPaddingBytes = 2 * sizeof(uint64_t);

// The most bits that the loop of find_bits() can pass with one JpegCodes::Skip: kSkipBits for the codes, and
// up to 16 for the number after the last code.
constexpr size_t kMostSkippedBits = JpegCodes::kSkipBits + 16;
constexpr const char* kCannotBeDecoded = "an interval starts that cannot be decoded";

// Reads the bits of an interval. JPEG adds a zero byte after each 0xFF; the reader leaves these zeros out,
// but knows the offset in the JPEG of every byte.
class IntervalReader {
 public:
  IntervalReader(std::span<const std::byte> jpeg, const JpegInterval& interval) : begin_(interval.begin) {
    const std::span<const std::byte> coded = jpeg.subspan(interval.begin, interval.bytes);
    bytes_.resize(interval.bytes + kPaddingBytes);
    size_t count = 0;
    for (size_t at = 0; at < coded.size();) {
      const size_t marker = find_ff(coded, at);
      const size_t run_bytes = std::min(marker + 1, coded.size()) - at;
      std::memcpy(bytes_.data() + count, coded.data() + at, run_bytes);
      count += run_bytes;
      at += run_bytes + 1;
      if (marker < coded.size()) stuffed_.push_back(count);
    }
    interval_bits_ = count * 8;
    std::fill_n(bytes_.begin() + ptrdiff_t(count), kPaddingBytes, uint8_t{0xff});
  }

  // The next 64 bits, of which at least the highest 57 are valid. The highest bit is the one at `position`.
  uint64_t at(size_t position) const {
    uint64_t word = 0;
    std::memcpy(&word, bytes_.data() + position / 8, sizeof word);
    if constexpr (std::endian::native == std::endian::little) word = __builtin_bswap64(word);
    return word << (position % 8);
  }
  size_t size() const { return interval_bits_; }

  // The offset in the JPEG and the mask of the bit at `position`. Each call must pass a position that is not
  // before that of the call before.
  FlippableBit bit(size_t position) {
    while (stuffed_before_ < stuffed_.size() && stuffed_[stuffed_before_] <= position / 8) ++stuffed_before_;
    return {begin_ + position / 8 + stuffed_before_, uint8_t(0x80U >> (position % 8))};
  }

 private:
  const size_t begin_;
  std::vector<uint8_t> bytes_;
  // for each zero byte that was left out: how many bytes of `bytes_` are before it
  std::vector<size_t> stuffed_;
  size_t stuffed_before_ = 0;
  size_t interval_bits_ = 0;
};

bool may_flip(std::span<const std::byte> jpeg, const FlippableBit& bit) {
  const uint8_t byte_value = octet_at(jpeg, bit.offset);
  return byte_value != 0xff && (byte_value ^ bit.mask) != 0xff;
}

// Selects bits by the rules of FlipGroups. The caller offers the flippable bits in the order of their
// positions.
class BitSelector {
 public:
  explicit BitSelector(FlipGroups groups) : groups_(groups) {}

  // The position of the first bit that may be selected next. The caller must not offer a bit before it.
  size_t next_position() const { return next_position_; }

  void offer(const FlippableBit& bit, size_t position) {
    const size_t byte = position / 8;
    if (group_bits_ != 0 && byte >= group_begin_ + groups_.span_bytes) {
      close_group();
      if (position < next_position_) return;
    }
    if (group_bits_ == 0) group_begin_ = byte;
    selected_.push_back(bit);
    next_position_ = (byte + 1) * 8;
    if (++group_bits_ == groups_.bits_per_group) close_group();
  }

  std::vector<FlippableBit> selected() && { return std::move(selected_); }

 private:
  void close_group() {
    group_bits_ = 0;
    next_position_ = std::max(next_position_, (group_begin_ + groups_.spacing_bytes) * 8);
  }

  const FlipGroups groups_;
  std::vector<FlippableBit> selected_;
  size_t next_position_ = 0;
  size_t group_begin_ = 0;  // first byte of the current group
  size_t group_bits_ = 0;   // bits selected for the current group
};

// Makes the table entry for a Huffman code that has `code_bits` bits and stands for `value`. The high four
// bits of `value` are the number of zeros before a coefficient; they are zero for a DC difference. The low
// four bits are the number of bits after the code, which give the coefficient.
Symbol symbol_of(uint8_t value, size_t code_bits) {
  constexpr uint8_t kSixteenZeros = 0xf0;
  const auto number_bits = uint8_t(value & 15U);
  const bool ends_block = number_bits == 0 && value != kSixteenZeros;
  return {.bits = uint8_t(code_bits + number_bits),
          .number_bits = number_bits,
          .coefficients = uint8_t(ends_block ? JpegCodes::kEndOfBlock : (value >> 4U) + 1U)};
}

}  // namespace

Result<JpegLayout> jpeg_layout(std::span<const std::byte> jpeg) {
  JpegLayout layout;
  PENSTOCK_ASSIGN(
      layout.header_bytes,
      for_each_segment(
          jpeg, [&](uint8_t marker, std::span<const std::byte> payload, size_t offset) -> Result<void> {
            if (marker == kBaselineFrame && payload.size() >= 6) layout.height_offset = offset + 1;
            return success();
          }));
  if (layout.height_offset == 0) return bad_jpeg(0, "is not a baseline JPEG");
  JpegInterval interval{layout.header_bytes, 0};
  for (size_t at = find_ff(jpeg, layout.header_bytes); at + 1 < jpeg.size(); at = find_ff(jpeg, at + 1)) {
    if (octet_at(jpeg, at + 1) == 0) continue;
    const uint8_t marker = octet_at(jpeg, at + 1);
    interval.bytes = at - interval.begin;
    layout.intervals.push_back(interval);
    if (marker == kEndOfImage) return layout;
    if (marker < kFirstRestart || marker > kLastRestart) return bad_jpeg(at, "is a marker within the scan");
    interval.begin = at + 2;
    ++at;
  }
  return bad_jpeg(jpeg.size(), "the end of the image is missing");
}

Result<std::vector<std::byte>> header_without_restarts(std::span<const std::byte> jpeg) {
  std::vector<std::byte> header{std::byte{0xff}, std::byte{kStartOfImage}};
  PENSTOCK_TRY(for_each_segment(
      jpeg, [&](uint8_t marker, std::span<const std::byte> payload, size_t offset) -> Result<void> {
        constexpr size_t kSegmentHeaderBytes = 4;
        const auto segment = jpeg.subspan(offset - kSegmentHeaderBytes, kSegmentHeaderBytes + payload.size());
        if (marker != kRestartInterval) header.insert(header.end(), segment.begin(), segment.end());
        return success();
      }));
  return header;
}

Result<void> JpegCodes::read_tables(std::span<const std::byte> payload, size_t offset) {
  size_t at = 0;
  while (at < payload.size()) {
    const uint8_t table_id = octet_at(payload, at);
    if ((table_id & 0x0fU) > 1 || (table_id >> 4U) > 1 || payload.size() - at < 17)
      return bad_jpeg(offset + at, "is a Huffman table out of range");
    HuffmanTable& table = (table_id >> 4U) == 0 ? dc_[table_id & 1U] : ac_[table_id & 1U];
    table.by_16_bits.assign(65536, {});
    const std::span<const std::byte> counts = payload.subspan(at + 1, 16);
    at += 17;
    // Index of the first entry of the next code. The segment lists the codes by length (ITU-T T.81, annex C).
    // So the entries of a code come directly after those of the code before.
    size_t next = 0;
    for (size_t length = 1; length <= 16; ++length) {
      const size_t table_entries = size_t{1} << (16 - length);
      for (size_t i = 0; i < octet_at(counts, length - 1); ++i, next += table_entries) {
        if (at == payload.size() || next + table_entries > table.by_16_bits.size())
          return bad_jpeg(offset + at, "is an invalid Huffman table");
        std::fill_n(table.by_16_bits.begin() + ptrdiff_t(next), table_entries,
                    symbol_of(octet_at(payload, at++), length));
      }
    }
    for (size_t i = 0; i < table.by_10_bits.size(); ++i) {
      const Symbol symbol = table.by_16_bits[i << 6U];
      table.by_10_bits[i] = symbol.bits - symbol.number_bits <= 10 ? symbol : Symbol{};
    }
  }
  return success();
}

Result<JpegCodes> JpegCodes::from_header(std::span<const std::byte> header) {
  JpegCodes codes;
  PENSTOCK_TRY(for_each_segment(
      header, [&](uint8_t marker, std::span<const std::byte> payload, size_t offset) -> Result<void> {
        return marker == kHuffmanTables ? codes.read_tables(payload, offset) : success();
      }));
  for (const size_t table_id : {0U, 1U})
    if (codes.dc_[table_id].by_16_bits.empty() || codes.ac_[table_id].by_16_bits.empty())
      return bad_jpeg(header.size(), "the header ends without all Huffman tables");
  for (const size_t table_id : {0U, 1U}) {
    fill_skips(codes.dc_[table_id], true, codes.ac_[table_id]);
    fill_skips(codes.ac_[table_id], false, codes.ac_[table_id]);
  }
  codes.find_paddings();
  return codes;
}

// Fills paddings_[n] for n = 1 to 7 with a sequence of coefficients that takes n bits in total. If none
// exists, uses n + 8 bits, or else n + 16. Each coefficient is 1 after at most 3 zeros, because such
// coefficients have the shortest codes.
void JpegCodes::find_paddings() {
  constexpr unsigned kMostCoefficients = 4;  // at most 3 zeros, and the coefficient after them
  constexpr unsigned kMostBits = 24;
  std::vector<BitString> short_coefficients;
  const std::vector<Symbol>& symbols = ac_[1].by_16_bits;
  for (size_t next = 0; next < symbols.size();) {
    const Symbol symbol = symbols[next];
    if (symbol.bits == 0) break;  // codes ascend, so no code follows
    const unsigned code_bits = symbol.bits - symbol.number_bits;
    const auto code = uint32_t(next >> (16U - code_bits));
    if (symbol.coefficients >= kEndOfBlock) end_of_block_ = {code, code_bits};
    if (symbol.number_bits == 1 && symbol.coefficients <= kMostCoefficients)
      short_coefficients.push_back({code << 1U | 1U, code_bits + 1});
    next += size_t{1} << (16U - code_bits);
  }
  // shortest[n]: the shortest sequence of coefficients that has exactly n bits.
  std::array<BitString, kMostBits + 1> shortest{};
  std::array<bool, kMostBits + 1> is_known{};
  is_known[0] = true;  // the sequence without coefficients
  for (unsigned count = 0; count <= kMostBits; ++count) {
    if (!is_known[count]) continue;
    if (count > 0 && paddings_[count % 8].bit_count == 0 && count % 8 != 0)
      paddings_[count % 8] = shortest[count];
    for (const BitString& coefficient : short_coefficients) {
      const unsigned total_bits = count + coefficient.bit_count;
      if (total_bits > kMostBits || is_known[total_bits]) continue;
      is_known[total_bits] = true;
      shortest[total_bits] = {shortest[count].bits << coefficient.bit_count | coefficient.bits, total_bits};
    }
  }
}

// Fills first.skips. For each value of the next kSkipBits bits, the entry says how many symbols can be
// skipped at once. The table `first` decodes the first of these symbols, and `ac` the others.
void JpegCodes::fill_skips(Table& first, bool is_dc, const Table& ac) {
  for (size_t next = 0; next < first.skips.size(); ++next) {
    Skip skip;
    bool block_ended = false;
    while (!block_ended && skip.bits < kSkipBits) {
      const bool is_first_symbol = skip.bits == 0;
      const Symbol symbol =
          (is_first_symbol ? first : ac).by_16_bits[(next << (16 - kSkipBits + skip.bits)) & 0xffffU];
      const unsigned code_bits = symbol.bits - symbol.number_bits;
      if (symbol.bits == 0 || skip.bits + code_bits > kSkipBits) break;
      skip.bits = uint8_t(skip.bits + symbol.bits);
      skip.coefficients = uint8_t(skip.coefficients + (is_first_symbol && is_dc ? 1U : symbol.coefficients));
      block_ended = skip.coefficients >= kEndOfBlock;
    }
    first.skips[next] = skip;
  }
}

Result<IntervalBits> JpegCodes::find_bits(std::span<const std::byte> jpeg, const JpegInterval& interval,
                                          size_t units, FlipGroups groups) const {
  if (jpeg.size() > UINT32_MAX || interval.bytes > jpeg.size() ||
      interval.begin > jpeg.size() - interval.bytes)
    return bad_jpeg(jpeg.size(), "the interval is truncated");
  IntervalReader reader(jpeg, interval);
  BitSelector selector(groups);
  // The tables that decode a coding unit, in the order of use: the DC table and the AC table of each block.
  // The loop finds the next table in this array without a branch, because a processor cannot predict where a
  // block ends.
  constexpr size_t kBlocksPerUnit = 6;  // blocks of a coding unit: four of luma, then one of each colour
  std::array<const Table*, 2 * kBlocksPerUnit> tables{};
  for (size_t block = 0; block < kBlocksPerUnit; ++block) {
    tables[2 * block] = &dc_[block < 4 ? 0 : 1];
    tables[2 * block + 1] = &ac_[block < 4 ? 0 : 1];
  }
  size_t position = 0;
  size_t block = 0;
  unsigned coefficient = 0;  // number of decoded coefficients of the current block
  for (size_t blocks_left = units * kBlocksPerUnit; blocks_left != 0;) {
    const bool is_dc = coefficient == 0;
    const Table& table = *tables[2 * block + (is_dc ? 0 : 1)];
    const uint64_t next = reader.at(position);
    const Skip skip = table.skips[next >> (64 - kSkipBits)];
    Symbol symbol;
    // Skips several symbols at once if none of their bits can be selected and they do not fill the block.
    if (position + kMostSkippedBits <= selector.next_position() && skip.bits != 0 &&
        coefficient + skip.coefficients % kEndOfBlock < 64) {
      position += skip.bits;
      coefficient += skip.coefficients;
    } else {
      symbol = table.find(next);
      if (symbol.bits == 0) return bad_jpeg(interval.begin, kCannotBeDecoded);
      position += symbol.bits;
      coefficient = is_dc ? 1 : coefficient + symbol.coefficients;
    }
    if (position > reader.size() || (coefficient > 64 && coefficient < kEndOfBlock))
      return bad_jpeg(interval.begin, kCannotBeDecoded);
    if (position > selector.next_position() && !is_dc && symbol.number_bits >= 2) {
      const FlippableBit bit = reader.bit(position - 1);
      if (may_flip(jpeg, bit)) selector.offer(bit, position - 1);
    }
    const bool block_ended = coefficient >= 64;
    coefficient = block_ended ? 0 : coefficient;
    blocks_left -= block_ended ? 1 : 0;
    block = block + (block_ended ? 1 : 0) == kBlocksPerUnit ? 0 : block + (block_ended ? 1 : 0);
  }
  return IntervalBits{std::move(selector).selected(), reader.size() - position};
}

namespace {

// Edits the last 32 bits of an interval. The constructor removes them from `coded` and keeps them as a
// number, without the zeros that JPEG requires after 0xFF. put_back() appends them to `coded` again, with
// such zeros.
class IntervalTail {
 public:
  explicit IntervalTail(std::vector<std::byte>& coded) : coded_(coded) {
    while (bit_count_ + 8 <= kTailBits && !coded_.empty()) take_byte();
  }

  unsigned bit_count() const { return bit_count_; }
  uint64_t last_bits(unsigned bit_count) const { return bits_ & ((uint64_t{1} << bit_count) - 1); }

  void drop_bits(unsigned bit_count) {
    bits_ >>= bit_count;
    bit_count_ -= bit_count;
  }
  void add_bits(uint64_t bits, unsigned bit_count) {
    bits_ = bits_ << bit_count | bits;
    bit_count_ += bit_count;
  }
  // Appends all whole bytes to `coded` again.
  void put_back() {
    while (bit_count_ >= 8) {
      bit_count_ -= 8;
      coded_.push_back(static_cast<std::byte>(bits_ >> bit_count_ & 0xffU));
      if (coded_.back() == std::byte{0xff}) coded_.push_back(std::byte{});
    }
  }

 private:
  static constexpr unsigned kTailBits = 32;

  void take_byte() {
    const auto pop = [&] {
      const std::byte last = coded_.back();
      coded_.pop_back();
      return last;
    };
    std::byte last = pop();
    if (last == std::byte{} && !coded_.empty() && coded_.back() == std::byte{0xff}) last = pop();
    bits_ |= std::to_integer<uint64_t>(last) << bit_count_;
    bit_count_ += 8;
  }

  std::vector<std::byte>& coded_;
  uint64_t bits_ = 0;
  unsigned bit_count_ = 0;
};

}  // namespace

Result<void> JpegCodes::fill_last_byte(std::vector<std::byte>& coded, size_t padding_bits) const {
  if (padding_bits == 0) return success();
  if (padding_bits >= paddings_.size())
    return bad_jpeg(coded.size(), "ends an interval that is padded with bytes");
  const BitString& filling = paddings_[padding_bits];
  if (filling.bit_count == 0 || end_of_block_.bit_count == 0)
    return bad_jpeg(0, "starts with Huffman tables that cannot fill a byte");
  const size_t end = coded.size();
  IntervalTail tail(coded);
  const bool ends_block = tail.bit_count() >= padding_bits + end_of_block_.bit_count &&
                          (tail.last_bits(unsigned(padding_bits) + end_of_block_.bit_count) >>
                           padding_bits) == end_of_block_.bits;
  if (ends_block) {
    tail.drop_bits(unsigned(padding_bits) + end_of_block_.bit_count);
    tail.add_bits(filling.bits, filling.bit_count);
    tail.add_bits(end_of_block_.bits, end_of_block_.bit_count);
  }
  tail.put_back();
  return ends_block ? success() : bad_jpeg(end, "ends an interval whose last block is incomplete");
}

}  // namespace penstock
