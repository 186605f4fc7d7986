// Threads: any thread that generates pictures calls StripStock::get(). A class of strips is made in cuts: a
// cut is one painted picture that is cut into strips. All threads that want the same class at the same time
// make its cuts together (ClassSlot), each with its own CutMaker.
// Locks: StripStock::mutex_ (for the map), ClassSlot::mutex_ and SharedCodes::mutex_. No thread takes one
// while it holds another. A finished class is immutable and is read without a lock.
// Memory: everything allocates. A std::bad_alloc becomes the error `exhausted`, and no thread waits for ever.
// Ctrl-C: this code does not check for it. A thread waits only until the other threads have made their cuts,
// which is soon.
// Crash: nothing is written.
#include "datagen/recipe/strip_stock.hpp"

#include <algorithm>
#include <array>
#include <atomic>
#include <bit>
#include <condition_variable>
#include <new>
#include <numeric>
#include <optional>

#include "datagen/codec/jpeg_encoder.hpp"
#include "datagen/recipe/picture.hpp"

namespace penstock {
namespace {

constexpr uint32_t kSheets = 6;  // number of sheets, which are pictures that are cut into whole strips
// Number of ends of each height. An end is a strip with fewer rows than a whole strip, for the end of a
// picture. Each end is painted as a picture of its own.
constexpr uint32_t kEndsPerHeight = 5;
constexpr uint32_t kMostEndHeights = 3;  // ends have at most this number of different heights
constexpr uint32_t kStripLines = 16;     // number of lines of pixels in a row of coding units

// Makes a table of crc32c_power() of 0, 1, 2 ... bytes. The table is large enough for most distances between
// two flips.
std::array<uint32_t, 4 * kFlipGroups.spacing_bytes> short_powers() {
  std::array<uint32_t, 4 * kFlipGroups.spacing_bytes> powers{crc32c_power(0)};
  const uint32_t one_byte_power = crc32c_power(1);
  for (size_t i = 1; i < powers.size(); ++i) powers[i] = crc32c_shift(powers[i - 1], one_byte_power);
  return powers;
}

// For each of the eight bits of a byte: how flipping this bit changes the checksum of the byte.
std::array<uint32_t, 8> flip_effects() {
  std::array<uint32_t, 8> effects{};
  const std::byte zero_byte{};
  for (size_t bit = 0; bit < effects.size(); ++bit) {
    const std::byte one_bit = std::byte{1} << bit;
    effects[bit] = crc32c({&one_bit, 1}) ^ crc32c({&zero_byte, 1});
  }
  return effects;
}

// Number of whole strips that are cut from a sheet. It is higher for small pictures, so that they differ as
// much from each other as large ones. In small pictures, every end strip has one row of coding units, or
// there are no end strips. So only whole strips make the sizes of small pictures differ.
uint32_t strips_per_sheet(uint32_t width) {
  constexpr uint32_t kSheetPixels = 48'000;
  constexpr uint32_t kMinStrips = 4;
  return std::max(kMinStrips, kSheetPixels / (width * kStripLines * strip_rows(width)));
}

// end_height_count() returns how many different heights ends have. end_rows() returns the height with number
// `height_index`, in rows. `strip` is the height of a whole strip, in rows. All ends are lower than a whole
// strip.
uint32_t end_height_count(uint32_t strip) {
  return std::min(strip - 1, kMostEndHeights);
}
uint32_t end_rows(uint32_t strip, uint32_t height_index) {
  return strip * (height_index + 1) / (end_height_count(strip) + 1);
}

// The number of cuts of a class. The first cuts are the sheets of whole strips. After them come the ends, the
// lowest first.
uint32_t cut_count(uint32_t width) {
  return kSheets + kEndsPerHeight * end_height_count(strip_rows(width));
}

}  // namespace

// The tables of the encoder's Huffman codes, which are the same for all classes. They take 1 MiB and some
// time to fill.
class StripStock::SharedCodes {
 public:
  // Returns the tables. The first call makes them from `header`. It holds the lock meanwhile, because other
  // threads need the tables too and must wait anyway. The tables never change after that, so callers use the
  // pointer without the lock.
  Result<const JpegCodes*> get(std::span<const std::byte> header) {
    const std::lock_guard lock(mutex_);
    if (!codes_) {
      PENSTOCK_ASSIGN(codes_, JpegCodes::from_header(header));
    }
    return &*codes_;
  }

 private:
  std::mutex mutex_;
  std::optional<JpegCodes> codes_;
};

// Makes cuts: paints a picture, cuts it into strips, and returns these as a StripClass. Reuses its buffers
// for the next cut. Only one thread uses it, and without a lock except in SharedCodes::get().
class StripStock::CutMaker {
 public:
  CutMaker(const StripStock& stock, RandomStream stream, uint32_t width, int percent)
      : stream_(stream),
        width_(width),
        strip_rows_(strip_rows(width)),
        percent_(percent),
        painter_(stock.scenery_),
        shared_codes_(*stock.codes_) {}

  Result<StripClass> make(uint32_t cut_index) {
    cut_ = {};
    cut_.width = width_;
    const bool is_sheet = cut_index < kSheets;
    const uint32_t rows = is_sheet ? strip_rows_ * strips_per_sheet(width_)
                                   : end_rows(strip_rows_, (cut_index - kSheets) / kEndsPerHeight);
    PENSTOCK_TRY(cut(stream_.substream(is_sheet ? cut_index : cut_index + kEndsPerHeight), rows));
    if (is_sheet) cut_.whole_strips = cut_.strips.size();
    return std::move(cut_);
  }

 private:
  Result<void> cut(RandomStream picture, uint32_t rows) {
    painter_.paint(picture, width_, rows * kStripLines, image_);
    for (uint32_t end = std::min(rows, strip_rows_); end <= rows; end += strip_rows_)
      grey_last_unit(end * kStripLines);
    PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(image_, percent_, strip_rows_));
    PENSTOCK_ASSIGN(const JpegLayout layout, jpeg_layout(jpeg));
    PENSTOCK_ASSIGN(cut_.header, header_without_restarts(jpeg));
    cut_.height_offset = layout.height_offset;
    PENSTOCK_ASSIGN(codes_, shared_codes_.get(cut_.header));
    for (const JpegInterval& interval : layout.intervals) {
      const uint32_t interval_rows = std::min(rows, strip_rows_);
      PENSTOCK_TRY(add_strip(jpeg, interval, interval_rows));
      rows -= interval_rows;
    }
    return success();
  }

  // Makes the last coding unit before line `end` grey, so that its DC values are zero. In a picture, the DC
  // values of the strip after this one are coded as differences from these zeros.
  void grey_last_unit(uint32_t end) {
    constexpr int kGrey = 128;
    for (size_t plane = 0; plane < image_.planes.size(); ++plane) {
      const size_t subsampling = plane == 0 ? 1 : 2;
      const size_t side = kStripLines / subsampling;
      const size_t stride = image_.stride() / subsampling;
      uint8_t* at = image_.planes[plane].data() + (end / subsampling - side) * stride + stride - side;
      for (size_t line = 0; line < side; ++line, at += stride) std::fill_n(at, side, kGrey);
    }
  }

  Result<void> add_strip(std::span<const std::byte> jpeg, const JpegInterval& interval, uint32_t rows) {
    const size_t units = size_t{rows} * ((width_ + kStripLines - 1) / kStripLines);
    PENSTOCK_ASSIGN(const IntervalBits bits, codes_->find_bits(jpeg, interval, units, kFlipGroups));
    const std::span<const std::byte> coded = jpeg.subspan(interval.begin, interval.bytes);
    bytes_.assign(coded.begin(), coded.end());
    PENSTOCK_TRY(codes_->fill_last_byte(bytes_, bits.padding_bits));
    Strip strip{.begin = uint32_t(cut_.bytes.size()),
                .bytes = uint32_t(bytes_.size()),
                .rows = rows,
                .crc32c = crc32c(bytes_),
                .first_flip = uint32_t(cut_.flips.size()),
                .flip_count = uint32_t(bits.flippable.size()),
                .first_edge = uint32_t(cut_.edges.size()),
                .crc_power = crc32c_power(bytes_.size())};
    add_flips(bits.flippable, interval.begin);
    strip.edge_count = uint32_t(cut_.edges.size()) - strip.first_edge;
    cut_.bytes.insert(cut_.bytes.end(), bytes_.begin(), bytes_.end());
    cut_.strips.push_back(strip);
    return success();
  }

  // Adds the strip's flips to `cut_`, and for each group of flips the offsets of its first and last byte
  // (`edges`). Computes for each flip how it changes the strip's checksum. The change does not depend on
  // other flips, because a CRC is linear if the number of bytes is fixed. The first loop goes from the last
  // bit to the first, because the shift then grows step by step.
  void add_flips(const std::vector<FlippableBit>& bits, size_t begin) {
    static const auto kPowers = short_powers();
    static const auto kFlipEffects = flip_effects();
    const size_t first = cut_.flips.size();
    uint32_t power = crc32c_power(0);
    size_t next_offset = bytes_.size() - 1;
    for (size_t i = bits.size(); i-- > 0;) {
      const size_t at = bits[i].offset - begin;
      const size_t distance = next_offset - at;
      power = crc32c_shift(power, distance < kPowers.size() ? kPowers[distance] : crc32c_power(distance));
      next_offset = at;
      cut_.flips.emplace_back(uint32_t(at), bits[i].mask,
                              crc32c_shift(kFlipEffects[size_t(std::countr_zero(bits[i].mask))], power));
    }
    std::reverse(cut_.flips.begin() + ptrdiff_t(first), cut_.flips.end());
    for (size_t i = first; i < cut_.flips.size(); ++i) {
      const uint32_t at = cut_.flips[i].at();
      const bool begins_group =
          i == first || at >= cut_.edges[cut_.edges.size() - 2] + kFlipGroups.span_bytes;
      if (begins_group) cut_.edges.insert(cut_.edges.end(), 2, at);
      cut_.edges.back() = at;
    }
  }

  const RandomStream stream_;
  const uint32_t width_;
  const uint32_t strip_rows_;  // number of rows of a whole strip
  const int percent_;
  PicturePainter painter_;
  JpegEncoder encoder_;
  YccImage image_;
  SharedCodes& shared_codes_;
  const JpegCodes* codes_ = nullptr;
  std::vector<std::byte> bytes_;  // bytes of the current strip
  StripClass cut_;
};

namespace {

void append(StripClass& joined, StripClass part) {
  if (joined.strips.empty()) {
    joined = std::move(part);
    return;
  }
  const auto bytes = uint32_t(joined.bytes.size());
  const auto flips = uint32_t(joined.flips.size());
  const auto edges = uint32_t(joined.edges.size());
  for (Strip& strip : part.strips) {
    strip.begin += bytes;
    strip.first_flip += flips;
    strip.first_edge += edges;
  }
  joined.bytes.insert(joined.bytes.end(), part.bytes.begin(), part.bytes.end());
  joined.flips.insert(joined.flips.end(), part.flips.begin(), part.flips.end());
  joined.edges.insert(joined.edges.end(), part.edges.begin(), part.edges.end());
  joined.strips.insert(joined.strips.end(), part.strips.begin(), part.strips.end());
  joined.whole_strips += part.whole_strips;
}

// Joins all cuts into one class. It joins them in the order of their numbers, so that the class does not
// depend on which thread made which cut. The thread that ends the last cut of a ClassSlot calls this function
// with ClassSlot::mutex_ held.
Result<StripClass> join_cuts(std::vector<Result<StripClass>>& cuts) {
  StripClass joined;
  for (Result<StripClass>& cut : cuts) {
    if (!cut.ok()) return std::move(cut).error();
    append(joined, *std::move(cut));
  }
  cuts.clear();
  joined.by_size.resize(joined.strips.size());
  std::iota(joined.by_size.begin(), joined.by_size.end(), 0U);
  std::stable_sort(joined.by_size.begin(), joined.by_size.end(),
                   [&](uint32_t a, uint32_t b) { return joined.strips[a].bytes < joined.strips[b].bytes; });
  for (const uint32_t strip : joined.by_size) joined.sorted_sizes.push_back(joined.strips[strip].bytes);
  return joined;
}

}  // namespace

// A class of strips, and the state of making it. Every thread that needs the class makes cuts until all are
// taken. The thread that ends the last cut joins all cuts. Every cut ends, even if an exception is thrown. If
// a cut failed, its element of cuts_ has an error.
class StripStock::ClassSlot {
 public:
  // Fills class_ and cuts_ with the errors for a lack of memory. They are made in advance, because they could
  // not be allocated when memory has run out.
  explicit ClassSlot(uint32_t width)
      : class_(make_error(Errc::exhausted, "no memory for the stock of pictures {} wide", width)),
        cuts_(cut_count(width), class_) {}

  Result<const StripClass*> get(const StripStock& stock, RandomStream stream, uint32_t width, int percent) {
    // Makes cuts without the lock, then waits for the cuts of other threads. A thread that comes when all
    // cuts are taken only waits.
    make_cuts(stock, stream, width, percent);
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return ended_cuts_ == cut_count_; });
    if (!class_.ok()) return class_.error();
    return &*class_;
  }

 private:
  void make_cuts(const StripStock& stock, RandomStream stream, uint32_t width, int percent) {
    std::optional<CutMaker> maker;
    for (uint32_t cut_index = next_cut_++; cut_index < cut_count_; cut_index = next_cut_++) {
      try {
        if (!maker) maker.emplace(stock, stream, width, percent);
        cuts_[cut_index] = maker->make(cut_index);  // no other thread uses this element before end_cut()
      } catch (const std::exception&) {             // no memory: the element already has the error for that
      }
      end_cut();  // also after an exception; otherwise get() would wait for ever
    }
  }

  // Counts a cut that has ended. The thread that ends the last one joins all cuts (class_). It sees all of
  // cuts_, because each thread takes this lock after it has written its cut.
  void end_cut() {
    const std::lock_guard lock(mutex_);
    if (++ended_cuts_ < cut_count_) return;
    try {
      class_ = join_cuts(cuts_);
    } catch (const std::exception&) {  // no memory: class_ already has the error for that
    }
    ready_.notify_all();
  }

  std::atomic<uint32_t> next_cut_{0};
  std::mutex mutex_;  // protects ended_cuts_, and protects class_ until all cuts have ended
  std::condition_variable ready_;
  uint32_t ended_cuts_ = 0;
  Result<StripClass> class_;
  std::vector<Result<StripClass>> cuts_;
  const size_t cut_count_ = cuts_.size();  // kept here, because join_cuts() empties cuts_
};

StripStock::StripStock(const Scenery& scenery, RandomStream stream)
    : scenery_(scenery), stream_(stream), codes_(std::make_unique<SharedCodes>()) {}
StripStock::~StripStock() = default;

Result<const StripClass*> StripStock::get(uint32_t width, int quantizer_percent) const {
  const uint64_t key = (uint64_t{width} << 32U) | uint32_t(quantizer_percent);
  try {
    ClassSlot* slot = nullptr;
    {
      // The lock is held only to find or add the ClassSlot. After that, the pointer is used without the lock.
      // This is safe, because a ClassSlot keeps its address as long as the stock exists.
      const std::lock_guard lock(mutex_);
      std::unique_ptr<ClassSlot>& owner = class_slots_[key];
      if (owner == nullptr) owner = std::make_unique<ClassSlot>(width);
      slot = owner.get();
    }
    return slot->get(*this, stream_.substream(key), width, quantizer_percent);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for the stock of pictures");
  }
}

}  // namespace penstock
