#include "datagen/recipe/strip_stock.hpp"

#include <algorithm>
#include <array>
#include <new>
#include <numeric>
#include <optional>

#include "datagen/codec/jpeg.hpp"
#include "datagen/codec/jpeg_intervals.hpp"
#include "datagen/recipe/picture.hpp"

namespace penstock {
namespace {

constexpr std::uint32_t kSheets = 5;          // pictures that a class is cut from
constexpr std::uint32_t kStripsPerSheet = 4;  // of kStripRows rows
constexpr std::uint32_t kEnds = 5;            // of each smaller number of rows
constexpr std::uint32_t kLines = 16;          // of a row of coding units

// crc32c_power() of the distances that flips mostly have, looked up.
class ShortPowers {
 public:
  ShortPowers() {
    powers_[0] = crc32c_power(0);
    const std::uint32_t byte = crc32c_power(1);
    for (std::size_t i = 1; i < powers_.size(); ++i) powers_[i] = crc32c_shift(powers_[i - 1], byte);
  }
  std::uint32_t of(std::size_t bytes) const {
    return bytes < powers_.size() ? powers_[bytes] : crc32c_power(bytes);
  }

 private:
  std::array<std::uint32_t, 4 * kFlipSpacing> powers_{};
};

class ClassMaker {
 public:
  ClassMaker(const Scenery& scenery, RandomStream stream, std::uint32_t width, int percent)
      : stream_(stream), percent_(percent), painter_(scenery) {
    made_.width = width;
  }

  Result<StripClass> make() {
    for (std::uint32_t sheet = 0; sheet < kSheets; ++sheet)
      PENSTOCK_TRY(cut(stream_.substream(sheet), kStripRows * kStripsPerSheet));
    made_.full = made_.strips.size();
    for (std::uint32_t rows = 1; rows < kStripRows; ++rows)
      for (std::uint32_t end = 0; end < kEnds; ++end)
        PENSTOCK_TRY(cut(stream_.substream(kSheets + kEnds * rows + end), rows));
    made_.by_size.resize(made_.strips.size());
    std::iota(made_.by_size.begin(), made_.by_size.end(), 0U);
    std::stable_sort(made_.by_size.begin(), made_.by_size.end(), [this](std::uint32_t a, std::uint32_t b) {
      return made_.strips[a].bytes < made_.strips[b].bytes;
    });
    return std::move(made_);
  }

 private:
  Result<void> cut(RandomStream picture, std::uint32_t rows) {
    painter_.paint(picture, made_.width, rows * kLines, image_);
    PENSTOCK_ASSIGN(const std::span<const std::byte> jpeg, encoder_.encode(image_, percent_, kStripRows));
    PENSTOCK_ASSIGN(const JpegLayout layout, jpeg_layout(jpeg));
    if (made_.header.empty()) {
      made_.header.assign(jpeg.begin(), jpeg.begin() + static_cast<std::ptrdiff_t>(layout.header_bytes));
      made_.height_at = layout.height_at;
      PENSTOCK_ASSIGN(flippable_, FlippableBits::of(made_.header));
    }
    for (const JpegInterval& interval : layout.intervals) {
      const std::uint32_t here = std::min(rows, kStripRows);
      PENSTOCK_TRY(keep(jpeg, interval, here));
      rows -= here;
    }
    return success();
  }

  Result<void> keep(std::span<const std::byte> jpeg, const JpegInterval& interval, std::uint32_t rows) {
    const std::size_t units = std::size_t{rows} * ((made_.width + kLines - 1) / kLines);
    PENSTOCK_ASSIGN(const auto bits, flippable_->find(jpeg, interval, units, kFlipSpacing));
    const std::span<const std::byte> bytes = jpeg.subspan(interval.begin, interval.bytes);
    const Strip strip{.begin = static_cast<std::uint32_t>(made_.bytes.size()),
                      .bytes = static_cast<std::uint32_t>(bytes.size()),
                      .rows = rows,
                      .crc32c = crc32c(bytes),
                      .first_flip = static_cast<std::uint32_t>(made_.flips.size()),
                      .flips = static_cast<std::uint32_t>(bits.size()),
                      .power = crc32c_power(bytes.size() + kMarkerBytes)};
    // Checksums of equally long bytes are linear: `effect` is what the bit alone, among zeros, adds. From the
    // last bit to the first, so that what moves one over the bytes behind it grows from that of the one
    // behind.
    static const ShortPowers kPowers;
    made_.flips.resize(made_.flips.size() + bits.size());
    std::uint32_t power = crc32c_power(0);
    std::size_t behind = bytes.size() - 1;
    for (std::size_t i = bits.size(); i-- > 0;) {
      const std::size_t at = bits[i].at - interval.begin;
      power = crc32c_shift(power, kPowers.of(behind - at));
      behind = at;
      const std::byte one{bits[i].mask};
      const std::byte none{};
      const std::uint32_t effect = crc32c({&one, 1}) ^ crc32c({&none, 1});
      made_.flips[strip.first_flip + i] = {.at = strip.begin + static_cast<std::uint32_t>(at),
                                           .crc32c = crc32c_shift(effect, power),
                                           .mask = bits[i].mask};
    }
    made_.bytes.insert(made_.bytes.end(), bytes.begin(), bytes.end());
    made_.bytes.resize(made_.bytes.size() + kMarkerBytes);
    made_.strips.push_back(strip);
    return success();
  }

  const RandomStream stream_;
  const int percent_;
  PicturePainter painter_;
  JpegEncoder encoder_;
  YccImage image_;
  std::optional<FlippableBits> flippable_;
  StripClass made_;
};

}  // namespace

Result<const StripClass*> StripStock::get(std::uint32_t width, int quantizer_percent) const {
  const std::uint64_t key = (std::uint64_t{width} << 32U) | static_cast<std::uint32_t>(quantizer_percent);
  try {
    Slot* slot = nullptr;
    {
      const std::lock_guard lock(mutex_);
      std::unique_ptr<Slot>& place = slots_[key];
      if (place == nullptr) place = std::make_unique<Slot>();
      slot = place.get();
    }
    std::call_once(slot->once, [&] {
      slot->made = ClassMaker(scenery_, stream_.substream(key), width, quantizer_percent).make();
    });
    if (!slot->made.ok()) return slot->made.error();
    return &*slot->made;
  } catch (const std::bad_alloc&) {
    return make_error(Errc::exhausted,
                      "no memory for the stock of pictures " + std::to_string(width) + " wide");
  }
}

}  // namespace penstock
