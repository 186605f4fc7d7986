// A stock of encoded strips of pictures. Joining strips makes JPEG files as fast as memory can be read, and
// each file is different from all others.
//
// A strip consists of rows of coding units; a row has 16 lines of pixels. The last strip of a picture (its
// end) may have fewer rows than the others. A strip can be decoded without the strip before it. Strips of one
// class have the same width, quantizer and Huffman tables. So a header, any strips in any order and an end
// form a valid picture.
//
// Strips can follow each other without a restart marker. In a JPEG, DC values are coded as differences from
// the DC values before them; at the start of a picture, these count as zero. The last coding unit of each
// strip is grey, so the DC values before the next strip are zero too. The codes of this grey unit also fill
// the strip's last byte.
//
// Each strip has a list of bits that may be flipped (jpeg_intervals.hpp). The flips make samples different
// although they share strips: no two samples have an equal file system block. The bits are in groups, so that
// flipping them loads few cache lines.
//
// Pictures that are joined from strips are decoded as fast as other JPEG files. With restart intervals,
// libjpeg-turbo would decode the whole picture in a careful mode, which is 5 to 11% slower.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "datagen/codec/jpeg_intervals.hpp"
#include "datagen/recipe/scenery.hpp"
#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/random.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// The number of rows of a whole strip, for a picture of this width. A usual picture of 250 to 4,000 pixels
// width has 10 to 20 strips. Strips have few rows, so that the stock is small and fits into faster caches.
// Even in the widest pictures, a strip has fewer than 2^16 coding units, so that a 16-bit number can count
// them.
constexpr uint32_t strip_rows(uint32_t width) {
  constexpr uint32_t kMostRows = 16;
  // The most coding units in a row, because a JPEG has at most 65500 pixels in a line.
  constexpr uint32_t kMostUnits = (65500 + 15) / 16;
  static_assert(kMostRows * kMostUnits <= 65535);
  return std::min((width + 249) / 250, kMostRows);
}
inline constexpr FlipGroups kFlipGroups{.spacing_bytes = 1024, .bits_per_group = 8, .span_bytes = 64};

struct Flip {
  uint32_t position = 0;  // the byte's offset in the strip, shifted left by 8, plus the mask of the bit
  uint32_t crc32c = 0;    // the strip's checksum is changed by XOR with this
  Flip(uint32_t at, uint8_t mask, uint32_t crc) : position(at << 8U | mask), crc32c(crc) {}
  uint32_t at() const { return position >> 8U; }
  std::byte mask() const { return static_cast<std::byte>(position & 0xffU); }
};

struct Strip {
  uint32_t begin = 0;  // offset of the strip in StripClass::bytes
  uint32_t bytes = 0;
  uint32_t rows = 0;
  uint32_t crc32c = 0;  // checksum of the strip in the stock, without flips
  uint32_t first_flip = 0;
  uint32_t flip_count = 0;
  uint32_t first_edge = 0;
  uint32_t edge_count = 0;
  uint32_t crc_power = 0;  // crc32c_power() of `bytes`
};

// All strips of one width and quantizer. Immutable, so any thread reads it without a lock.
struct StripClass {
  uint32_t width = 0;
  std::vector<std::byte> header;  // header of a picture of this class; callers set the height
  size_t height_offset = 0;       // offset of the picture's height in the header
  std::vector<std::byte> bytes;
  std::vector<Flip> flips;  // flips of all strips, in the order of strips
  // For each group of flips: the offsets in the strip of the first and the last byte of the group. The groups
  // are in the order of the strips.
  std::vector<uint32_t> edges;
  std::vector<Strip> strips;  // `whole_strips` strips of strip_rows() rows, then strips with fewer rows
  size_t whole_strips = 0;
  std::vector<uint32_t> by_size;       // indexes of all strips, the smallest first
  std::vector<uint32_t> sorted_sizes;  // sizes of all strips, in the order of by_size
};

// Makes classes of strips and keeps them. Any thread may use it. The first get() of a class makes the class.
// Threads that need the same class at that time help to make it. This takes 7 to 15 ms of processor time for
// a width of 500 pixels. A class depends only on the scenery, `stream`, width and percentage. The scenery
// must outlive the stock.
class StripStock {
 public:
  StripStock(const Scenery& scenery, RandomStream stream);
  ~StripStock();

  // Returns the class of this width and percentage. Fails with `exhausted` if memory runs out. The class
  // exists as long as the stock.
  Result<const StripClass*> get(uint32_t width, int quantizer_percent) const;

 private:
  class SharedCodes;
  class CutMaker;
  class ClassSlot;
  const Scenery& scenery_;
  const RandomStream stream_;
  const std::unique_ptr<SharedCodes> codes_;
  mutable std::mutex mutex_;  // protects the map, not the objects in it
  mutable std::map<uint64_t, std::unique_ptr<ClassSlot>> class_slots_;
};

}  // namespace penstock
