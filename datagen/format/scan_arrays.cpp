#include "datagen/format/scan_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <string>

#include "datagen/format/byte_order.hpp"

namespace penstock {
namespace {

// All of an array of integers; 64 bits hold any of them.
Result<std::vector<std::uint64_t>> read_integers(ObjectWindow& window, const ScannedArray& array) {
  if (array.rows_apart || !array.rows.empty())
    return window.error(Errc::unsupported, array.offset,
                        fmt::format("the integers of '{}' do not lie together", array.stored.name));
  const auto item = static_cast<std::size_t>(array.item_bytes);
  std::vector<std::uint64_t> values;
  values.reserve(static_cast<std::size_t>(array.stored.bytes / item));
  constexpr std::size_t kBlock = 64 * 1024;  // a multiple of every item's size
  for (std::uint64_t at = 0; at < array.stored.bytes; at += kBlock) {
    const auto length = static_cast<std::size_t>(std::min<std::uint64_t>(kBlock, array.stored.bytes - at));
    PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, window.at(array.offset + at, length));
    for (std::size_t i = 0; i + item <= length; i += item) {
      std::uint64_t value = 0;
      for (std::size_t b = 0; b < item; ++b) {
        const std::size_t significance = array.big_endian ? item - 1 - b : b;
        value |= number_at(bytes, i + b, 1) << (8 * significance);
      }
      const std::size_t spare = 64 - 8 * item;
      if (array.is_signed)
        value = static_cast<std::uint64_t>(static_cast<std::int64_t>(value << spare) >> spare);
      values.push_back(value);
    }
  }
  return values;
}

class SampleFinder {
 public:
  SampleFinder(ObjectWindow& window, std::span<const ScannedArray> arrays, const SampleChoice& choice)
      : window_(window), payload_(arrays[choice.payload]), choice_(choice) {
    if (choice.how == SampleChoice::How::rows && choice.samples > 0)
      row_bytes_ = payload_.stored.bytes / choice.samples;
  }

  // `ends`: of ranges.
  Result<Placement> place(std::uint64_t sample, std::span<const std::uint64_t> ends) const {
    if (choice_.how == SampleChoice::How::whole) return Placement{payload_.offset, payload_.stored.bytes};
    if (choice_.how == SampleChoice::How::rows) {
      const std::uint64_t offset =
          payload_.rows.empty() ? payload_.offset + sample * row_bytes_ : payload_.rows[sample];
      return Placement{offset, row_bytes_};
    }
    const std::uint64_t begin = ends[sample];
    const std::uint64_t end = ends[sample + 1];
    if (begin > end || end > payload_.stored.bytes / payload_.item_bytes)
      return window_.corrupt(payload_.offset, fmt::format("sample {} of '{}' from element {} to {}", sample,
                                                          payload_.stored.name, begin, end));
    return Placement{payload_.offset + begin * payload_.item_bytes, (end - begin) * payload_.item_bytes};
  }

  Result<void> check() const {
    const bool whole = choice_.how == SampleChoice::How::whole;
    if ((payload_.rows_apart && !whole) || (!payload_.rows.empty() && choice_.how != SampleChoice::How::rows))
      return window_.error(Errc::unsupported, payload_.offset,
                           fmt::format("the samples of '{}' do not lie together", payload_.stored.name));
    return success();
  }

  bool plain_bytes() const { return payload_.item_bytes == 1 && payload_.stored.shape.size() == 1; }

 private:
  const ObjectWindow& window_;
  const ScannedArray& payload_;
  const SampleChoice& choice_;
  std::uint64_t row_bytes_ = 0;
};

}  // namespace

Result<std::string_view> codec_at(ObjectWindow& window, const Placement& placement) {
  constexpr std::size_t kLook = 8;
  if (placement.length < kLook) return std::string_view("raw");
  PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, window.at(placement.offset, kLook));
  constexpr std::uint64_t kPng = 0x0a1a0a0d474e5089;
  if (number_at(bytes, 0, 8) == kPng) return std::string_view("png");
  return std::string_view(number_at(bytes, 0, 3) == 0xffd8ff ? "jpeg" : "raw");
}

Result<void> scan_arrays(ObjectWindow& window, std::span<const ScannedArray> arrays,
                         const std::function<void(const Format::Found&)>& found) {
  std::vector<StoredArray> stored;
  for (const ScannedArray& array : arrays) stored.push_back(array.stored);
  const std::optional<SampleChoice> choice = choose_samples(stored);
  if (!choice) return window.corrupt(0, "holds no array");
  const SampleFinder finder(window, arrays, *choice);
  PENSTOCK_TRY(finder.check());
  std::vector<std::uint64_t> ends;
  std::vector<std::uint64_t> labels;
  if (choice->offsets) {
    PENSTOCK_ASSIGN(ends, read_integers(window, arrays[*choice->offsets]));
  }
  if (choice->labels) {
    PENSTOCK_ASSIGN(labels, read_integers(window, arrays[*choice->labels]));
  }
  std::string_view codec = "raw";
  std::string label;
  for (std::uint64_t i = 0; i < choice->samples; ++i) {
    PENSTOCK_ASSIGN(const Placement placement, finder.place(i, ends));
    if (i == 0 && finder.plain_bytes()) {
      PENSTOCK_ASSIGN(codec, codec_at(window, placement));
    }
    if (choice->labels)
      label = arrays[*choice->labels].is_signed ? fmt::format("{}", static_cast<std::int64_t>(labels[i]))
                                                : fmt::format("{}", labels[i]);
    found({.label_name = label, .placement = placement, .codec = codec});
  }
  return success();
}

}  // namespace penstock
