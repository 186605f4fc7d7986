// Fuzz target: the input is a JPEG. Looks up its restart intervals and flippable bits, and flips the bits.
// Every interval must then be at the same offset as before. If the last byte of an interval can be filled,
// the interval must become only a few bytes longer. The search for flippable bits in it must not crash.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "datagen/codec/jpeg_intervals.hpp"

namespace {

void abort_unless(bool right) {
  if (!right) std::abort();
}

bool same_layout(const penstock::JpegLayout& a, const penstock::JpegLayout& b) {
  return a.header_bytes == b.header_bytes && a.height_offset == b.height_offset &&
         std::equal(a.intervals.begin(), a.intervals.end(), b.intervals.begin(), b.intervals.end(),
                    [](const auto& x, const auto& y) { return x.begin == y.begin && x.bytes == y.bytes; });
}

}  // namespace

void fill(const penstock::JpegCodes& codes, std::span<const std::byte> jpeg,
          const penstock::JpegInterval& interval, size_t units, penstock::FlipGroups groups) {
  const auto found = codes.find_bits(jpeg, interval, units, groups);
  const auto coded = jpeg.subspan(interval.begin, interval.bytes);
  std::vector<std::byte> bytes(coded.begin(), coded.end());
  if (!codes.fill_last_byte(bytes, found->padding_bits).ok()) return;
  abort_unless(bytes.size() <= interval.bytes + 8);
  static_cast<void>(codes.find_bits(bytes, {0, bytes.size()}, units, groups).ok());
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  constexpr penstock::FlipGroups kGroups{.spacing_bytes = 16, .bits_per_group = 3, .span_bytes = 8};
  constexpr size_t kMostUnits = 64;
  const auto input = std::as_bytes(std::span(data, size));
  std::vector<std::byte> jpeg(input.begin(), input.end());
  const auto layout = penstock::jpeg_layout(jpeg);
  const auto bits = penstock::JpegCodes::from_header(jpeg);
  if (!layout.ok()) return 0;
  abort_unless(layout->height_offset + 2 <= layout->header_bytes && !layout->intervals.empty());
  for (const penstock::JpegInterval& interval : layout->intervals) {
    abort_unless(interval.begin >= layout->header_bytes && interval.bytes <= size - interval.begin);
    if (!bits.ok()) continue;
    // Tries numbers of coding units, since an interval of the input may have any number.
    std::vector<penstock::FlippableBit> flips;
    size_t decoded_units = 0;
    for (size_t units = 1; units <= kMostUnits; units *= 2) {
      const auto found = bits->find_bits(jpeg, interval, units, kGroups);
      if (!found.ok()) break;
      flips = found->flippable;
      decoded_units = units;
    }
    if (decoded_units > 0) fill(*bits, jpeg, interval, decoded_units, kGroups);
    for (const penstock::FlippableBit& bit : flips) {
      abort_unless(bit.offset >= interval.begin && bit.offset < interval.begin + interval.bytes);
      jpeg[bit.offset] ^= std::byte{bit.mask};
    }
  }
  const auto flipped = penstock::jpeg_layout(jpeg);
  abort_unless(flipped.ok() && same_layout(*layout, *flipped));
  return 0;
}
