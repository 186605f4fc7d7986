// Threads: any thread that generates pictures calls StripStock::get(). All threads that want a class at the
// same time make its cuts together (Slot), each with its own CutMaker.
// Locks: StripStock::mutex_ (for the map), Slot::mutex_ and Codes::mutex_. No thread takes one while it holds
// another. A finished class is immutable and is read without a lock.
// Memory: everything allocates. A std::bad_alloc becomes the error `exhausted`, and no thread is left
// waiting.
// Ctrl-C: this code does not check for it. A wait is short: it ends when the other threads have made their
// cuts.
// Crash: nothing is written.
#include "datagen/recipe/strip_stock.hpp"

#include <fmt/format.h>

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

constexpr std::uint32_t kSheets = 6;         // pictures from which a class is cut
constexpr std::uint32_t kEndsPerHeight = 5;  // pictures from which the ends of one height are cut
constexpr std::uint32_t kMostEndRows = 3;    // number of such heights
constexpr std::uint32_t kStripLines = 16;    // in a row of coding units

// crc32c_power() of 0, 1, 2 ... bytes. These distances are enough for most flips.
std::array<std::uint32_t, 4 * kFlipGroups.spacing> short_powers() {
  std::array<std::uint32_t, 4 * kFlipGroups.spacing> powers{crc32c_power(0)};
  const std::uint32_t byte = crc32c_power(1);
  for (std::size_t i = 1; i < powers.size(); ++i) powers[i] = crc32c_shift(powers[i - 1], byte);
  return powers;
}

// For each bit of a byte: how flipping it changes the checksum of that byte.
std::array<std::uint32_t, 8> flip_effects() {
  std::array<std::uint32_t, 8> effects{};
  const std::byte none{};
  for (std::size_t bit = 0; bit < effects.size(); ++bit) {
    const std::byte one = std::byte{1} << bit;
    effects[bit] = crc32c({&one, 1}) ^ crc32c({&none, 1});
  }
  return effects;
}

// Number of whole strips per sheet. Small strips need more of them. All ends of small strips have one row, so
// only whole strips differ in size. And small pictures should be as different from each other as large ones.
std::uint32_t strips_per_sheet(std::uint32_t width) {
  constexpr std::uint32_t kSheetPixels = 48'000;
  constexpr std::uint32_t kMinStrips = 4;
  return std::max(kMinStrips, kSheetPixels / (width * kStripLines * strip_rows(width)));
}

// The number of different heights that ends have, and the height number `which` in rows. All are lower than a
// whole strip.
std::uint32_t end_kinds(std::uint32_t strip) {
  return std::min(strip - 1, kMostEndRows);
}
std::uint32_t end_rows(std::uint32_t strip, std::uint32_t which) {
  return strip * (which + 1) / (end_kinds(strip) + 1);
}

// The number of pictures (cuts) from which a class is made. Order: sheets of whole strips, then ends, the
// lowest first.
std::uint32_t cuts_of(std::uint32_t width) {
  return kSheets + kEndsPerHeight * end_kinds(strip_rows(width));
}

}  // namespace

// The tables of the encoder's codes, shared by all classes. They take 1 MiB and some time to fill.
class StripStock::Codes {
 public:
  // The first call makes the tables from its header. The lock is held meanwhile on purpose, because every
  // other thread needs the tables too. They never change after that, so the pointer is used without the lock.
  Result<const JpegCodes*> get(std::span<const std::byte> header) {
    const std::lock_guard lock(mutex_);
    if (!codes_) {
      PENSTOCK_ASSIGN(codes_, JpegCodes::of(header));
    }
    return &*codes_;
  }

 private:
  std::mutex mutex_;
  std::optional<JpegCodes> codes_;
};

// Paints one picture and cuts it into strips, as a StripClass of its own. One thread, without a lock except
// in Codes::get(). Reuses its buffers for the next cut.
class StripStock::CutMaker {
 public:
  CutMaker(const StripStock& stock, RandomStream stream, std::uint32_t width, int percent)
      : stream_(stream),
        width_(width),
        rows_(strip_rows(width)),
        percent_(percent),
        painter_(stock.scenery_),
        tables_(*stock.codes_) {}

  Result<StripClass> make(std::uint32_t cut_index) {
    cut_ = {};
    cut_.width = width_;
    const bool sheet = cut_index < kSheets;
    const std::uint32_t rows =
        sheet ? rows_ * strips_per_sheet(width_) : end_rows(rows_, (cut_index - kSheets) / kEndsPerHeight);
    PENSTOCK_TRY(cut(stream_.substream(sheet ? cut_index : cut_index + kEndsPerHeight), rows));
    if (sheet) cut_.whole_strips = cut_.strips.size();
    return std::move(cut_);
  }

 private:
  Result<void> cut(RandomStream picture, std::uint32_t rows) {
    painter_.paint(picture, width_, rows * kStripLines, image_);
    for (std::uint32_t end = std::min(rows, rows_); end <= rows; end += rows_)
      grey_last_unit(end * kStripLines);
    PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(image_, percent_, rows_));
    PENSTOCK_ASSIGN(const JpegLayout layout, jpeg_layout(jpeg));
    PENSTOCK_ASSIGN(cut_.header, header_without_restarts(jpeg));
    cut_.height_at = layout.height_at;
    PENSTOCK_ASSIGN(codes_, tables_.get(cut_.header));
    for (const JpegInterval& interval : layout.intervals) {
      const std::uint32_t here = std::min(rows, rows_);
      PENSTOCK_TRY(add_strip(jpeg, interval, here));
      rows -= here;
    }
    return success();
  }

  // Makes the last coding unit before line `end` grey, because the next strip is coded relative to its DC
  // values.
  void grey_last_unit(std::uint32_t end) {
    constexpr int kGrey = 128;
    for (std::size_t plane = 0; plane < image_.planes.size(); ++plane) {
      const std::size_t shrunk = plane == 0 ? 1 : 2;
      const std::size_t side = kStripLines / shrunk;
      const std::size_t stride = image_.stride() / shrunk;
      std::uint8_t* at = image_.planes[plane].data() + (end / shrunk - side) * stride + stride - side;
      for (std::size_t line = 0; line < side; ++line, at += stride) std::fill_n(at, side, kGrey);
    }
  }

  Result<void> add_strip(std::span<const std::byte> jpeg, const JpegInterval& interval, std::uint32_t rows) {
    const std::size_t units = std::size_t{rows} * ((width_ + kStripLines - 1) / kStripLines);
    PENSTOCK_ASSIGN(const IntervalBits bits, codes_->find(jpeg, interval, units, kFlipGroups));
    const std::span<const std::byte> coded = jpeg.subspan(interval.begin, interval.bytes);
    bytes_.assign(coded.begin(), coded.end());
    PENSTOCK_TRY(codes_->fill_last_byte(bytes_, bits.padding));
    Strip strip{.begin = static_cast<std::uint32_t>(cut_.bytes.size()),
                .bytes = static_cast<std::uint32_t>(bytes_.size()),
                .rows = rows,
                .crc32c = crc32c(bytes_),
                .first_flip = static_cast<std::uint32_t>(cut_.flips.size()),
                .flips = static_cast<std::uint32_t>(bits.flippable.size()),
                .first_edge = static_cast<std::uint32_t>(cut_.edges.size()),
                .power = crc32c_power(bytes_.size())};
    add_flips(bits.flippable, interval.begin);
    strip.edges = static_cast<std::uint32_t>(cut_.edges.size()) - strip.first_edge;
    cut_.bytes.insert(cut_.bytes.end(), bytes_.begin(), bytes_.end());
    cut_.strips.push_back(strip);
    return success();
  }

  // The checksum of a given number of bytes is linear, so each flip adds a fixed value: the effect of its
  // bit, shifted over all bytes after it. The loop goes from the last bit to the first, because the shift
  // then grows step by step.
  void add_flips(const std::vector<FlippableBit>& bits, std::size_t begin) {
    static const auto kPowers = short_powers();
    static const auto kEffects = flip_effects();
    const std::size_t first = cut_.flips.size();
    std::uint32_t power = crc32c_power(0);
    std::size_t next_at = bytes_.size() - 1;
    for (std::size_t i = bits.size(); i-- > 0;) {
      const std::size_t at = bits[i].at - begin;
      const std::size_t between = next_at - at;
      power = crc32c_shift(power, between < kPowers.size() ? kPowers[between] : crc32c_power(between));
      next_at = at;
      cut_.flips.emplace_back(
          static_cast<std::uint32_t>(at), bits[i].mask,
          crc32c_shift(kEffects[static_cast<std::size_t>(std::countr_zero(bits[i].mask))], power));
    }
    std::reverse(cut_.flips.begin() + static_cast<std::ptrdiff_t>(first), cut_.flips.end());
    for (std::size_t i = first; i < cut_.flips.size(); ++i) {
      const std::uint32_t at = cut_.flips[i].at();
      const bool begins = i == first || at >= cut_.edges[cut_.edges.size() - 2] + kFlipGroups.within;
      if (begins) cut_.edges.insert(cut_.edges.end(), 2, at);
      cut_.edges.back() = at;
    }
  }

  const RandomStream stream_;
  const std::uint32_t width_;
  const std::uint32_t rows_;  // of a whole strip
  const int percent_;
  PicturePainter painter_;
  JpegEncoder encoder_;
  YccImage image_;
  Codes& tables_;
  const JpegCodes* codes_ = nullptr;
  std::vector<std::byte> bytes_;  // of the current strip
  StripClass cut_;
};

namespace {

void append(StripClass& whole, StripClass part) {
  if (whole.strips.empty()) {
    whole = std::move(part);
    return;
  }
  const auto bytes = static_cast<std::uint32_t>(whole.bytes.size());
  const auto flips = static_cast<std::uint32_t>(whole.flips.size());
  const auto edges = static_cast<std::uint32_t>(whole.edges.size());
  for (Strip& strip : part.strips) {
    strip.begin += bytes;
    strip.first_flip += flips;
    strip.first_edge += edges;
  }
  whole.bytes.insert(whole.bytes.end(), part.bytes.begin(), part.bytes.end());
  whole.flips.insert(whole.flips.end(), part.flips.begin(), part.flips.end());
  whole.edges.insert(whole.edges.end(), part.edges.begin(), part.edges.end());
  whole.strips.insert(whole.strips.end(), part.strips.begin(), part.strips.end());
  whole.whole_strips += part.whole_strips;
}

// Called by the last thread of a Slot, with its lock held. Cuts are joined in the order of their numbers, not
// in the order in which threads made them. So the class depends only on its parameters.
Result<StripClass> join_cuts(std::vector<Result<StripClass>>& cuts) {
  StripClass whole;
  for (Result<StripClass>& cut : cuts) {
    if (!cut.ok()) return std::move(cut).error();
    append(whole, *std::move(cut));
  }
  cuts.clear();
  whole.by_size.resize(whole.strips.size());
  std::iota(whole.by_size.begin(), whole.by_size.end(), 0U);
  std::stable_sort(whole.by_size.begin(), whole.by_size.end(), [&](std::uint32_t a, std::uint32_t b) {
    return whole.strips[a].bytes < whole.strips[b].bytes;
  });
  for (const std::uint32_t strip : whole.by_size) whole.sizes.push_back(whole.strips[strip].bytes);
  return whole;
}

}  // namespace

// A class that is being made. Every thread that wants it makes cuts until none is left. The last thread to
// finish joins them. Every cut ends, also by an exception. A cut that failed keeps its error.
class StripStock::Slot {
 public:
  // Allocates in advance what end() needs to report an error, so that a lack of memory can be reported later.
  explicit Slot(std::uint32_t width)
      : class_(
            make_error(Errc::exhausted, fmt::format("no memory for the stock of pictures {} wide", width))),
        cuts_(cuts_of(width), class_) {}

  Result<const StripClass*> get(const StripStock& stock, RandomStream stream, std::uint32_t width,
                                int percent) {
    // Makes cuts without the lock. Then waits for the cuts of other threads. A thread that arrives late makes
    // none.
    make_cuts(stock, stream, width, percent);
    std::unique_lock lock(mutex_);
    ready_.wait(lock, [this] { return ended_ == count_; });
    if (!class_.ok()) return class_.error();
    return &*class_;
  }

 private:
  void make_cuts(const StripStock& stock, RandomStream stream, std::uint32_t width, int percent) {
    std::optional<CutMaker> maker;
    for (std::uint32_t cut_index = next_++; cut_index < count_; cut_index = next_++) {
      try {
        if (!maker) maker.emplace(stock, stream, width, percent);
        cuts_[cut_index] = maker->make(cut_index);  // no other thread uses this element before end()
      } catch (const std::exception&) {             // no memory: the element already has that error
      }
      end();  // also after an exception, or get() would wait forever
    }
  }

  // The lock also orders memory: each thread takes it after its cut, so the last thread sees all of cuts_.
  void end() {
    const std::lock_guard lock(mutex_);
    if (++ended_ < count_) return;
    try {
      class_ = join_cuts(cuts_);
    } catch (const std::exception&) {  // no memory: class_ already has that error
    }
    ready_.notify_all();
  }

  std::atomic<std::uint32_t> next_{0};
  std::mutex mutex_;  // protects ended_, and class_ until all cuts have ended
  std::condition_variable ready_;
  std::uint32_t ended_ = 0;
  Result<StripClass> class_;
  std::vector<Result<StripClass>> cuts_;
  const std::size_t count_ = cuts_.size();  // stored, because join_cuts() empties cuts_
};

StripStock::StripStock(const Scenery& scenery, RandomStream stream)
    : scenery_(scenery), stream_(stream), codes_(std::make_unique<Codes>()) {}
StripStock::~StripStock() = default;

Result<const StripClass*> StripStock::get(std::uint32_t width, int quantizer_percent) const {
  const std::uint64_t key = (std::uint64_t{width} << 32U) | static_cast<std::uint32_t>(quantizer_percent);
  try {
    Slot* slot = nullptr;
    {
      // Held only to find or add the Slot, which stays at the same address for the life of the stock.
      const std::lock_guard lock(mutex_);
      std::unique_ptr<Slot>& place = slots_[key];
      if (place == nullptr) place = std::make_unique<Slot>(width);
      slot = place.get();
    }
    return slot->get(*this, stream_.substream(key), width, quantizer_percent);
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted, "no memory for the stock of pictures");
  }
}

}  // namespace penstock
