#include "datagen/format/scan_arrays.hpp"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "datagen/format/byte_order.hpp"

namespace penstock {
namespace {

using Layout = SampleChoice::Layout;

uint64_t integer_at(std::span<const std::byte> bytes, const ArrayExtent& extent) {
  uint64_t value = 0;
  for (size_t i = 0; i < bytes.size(); ++i)
    value = value << 8U | number_at(bytes, extent.big_endian ? i : bytes.size() - 1 - i, 1);
  const size_t unused_bits = 64 - 8 * bytes.size();
  if (extent.is_signed) value = uint64_t(int64_t(value << unused_bits) >> unused_bits);
  return value;
}

Placement row_at(const ArrayExtent& extent, uint64_t row, uint64_t row_bytes) {
  if (extent.chunks.empty()) return {extent.offset + row * row_bytes, row_bytes};
  return {extent.chunks[row / extent.rows_per_chunk] + row % extent.rows_per_chunk * row_bytes, row_bytes};
}

// Where the bytes of the array can be read, at the offsets of row_at().
ByteWindow& source_of(ObjectWindow& window, const ArrayExtent& extent) {
  if (extent.unpacked) return *extent.unpacked;
  return window;
}

// A sample that is at `place` in source_of().
Result<Format::FoundSample> sample_at(const ArrayExtent& extent, const Placement& place) {
  if (!extent.unpacked) return Format::FoundSample{.label_name = {}, .placement = place};
  const SampleExtent bytes{place.offset, place.length};
  PENSTOCK_ASSIGN(const Extent stored, extent.unpacked->stored_range(bytes));
  return Format::FoundSample{.label_name = {},
                             .placement = {stored.offset, stored.length},
                             .form = extent.unpacked->form(),
                             .extent = bytes};
}

Result<void> finish(const ArrayExtent& extent) {
  return extent.unpacked ? extent.unpacked->finish() : success();
}

// The values of an array of integers of up to 64 bits.
class Integers {
 public:
  static Result<Integers> read(ObjectWindow& window, std::span<const StoredArray> arrays, size_t index,
                               const LocateArray& locate) {
    const StoredArray& array = arrays[index];
    PENSTOCK_ASSIGN(const ArrayExtent extent, locate(index, array.shape.size() == 1));
    Integers integers;
    integers.is_signed_ = extent.is_signed;
    const auto item_bytes = size_t(extent.item_bytes);
    const uint64_t count = array.bytes / item_bytes;
    ByteWindow& source = source_of(window, extent);
    if (extent.rows_are_split)
      return window.error(Errc::unsupported, extent.offset,
                          fmt::format("the integers of '{}' are not contiguous", array.name));
    integers.values_.reserve(size_t(count));
    for (uint64_t i = 0; i < count; ++i) {
      const Placement placement = row_at(extent, i, item_bytes);
      PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, source.at(placement.offset, item_bytes));
      integers.values_.push_back(integer_at(bytes, extent));
    }
    PENSTOCK_TRY(finish(extent));
    return integers;
  }

  uint64_t operator[](uint64_t i) const { return values_[i]; }
  std::string to_decimal(uint64_t i) const {
    return is_signed_ ? fmt::format("{}", int64_t(values_[i])) : fmt::format("{}", values_[i]);
  }

 private:
  std::vector<uint64_t> values_;
  bool is_signed_ = false;
};

Result<void> check_extent(const ObjectWindow& window, const StoredArray& payload, const ArrayExtent& extent,
                          Layout layout) {
  if (!extent.rows_are_split || layout == Layout::one_sample) return success();
  return window.error(
      Errc::unsupported, extent.offset,
      fmt::format("the bytes of a sample of '{}' are not contiguous: save it with numpy.ascontiguousarray",
                  payload.name));
}

}  // namespace

Result<std::string_view> codec_at(ByteWindow& window, const Placement& placement) {
  constexpr size_t kInspectedBytes = 8;
  if (placement.length < kInspectedBytes) return std::string_view("raw");
  PENSTOCK_ASSIGN(const std::span<const std::byte> bytes, window.at(placement.offset, kInspectedBytes));
  constexpr uint64_t kPngSignature = 0x0a1a0a0d474e5089;
  if (number_at(bytes, 0, 8) == kPngSignature) return std::string_view("png");
  return std::string_view(number_at(bytes, 0, 3) == 0xffd8ff ? "jpeg" : "raw");
}

Result<void> check_sample_count(const ByteWindow& window, uint64_t samples) {
  if (samples <= kMostSamplesPerObject) return success();
  return window.error(Errc::unsupported, 0,
                      fmt::format("it claims {} samples, and the limit per object is {}: split it", samples,
                                  kMostSamplesPerObject));
}

std::string list_arrays(std::span<const StoredArray> arrays) {
  constexpr size_t kMostNames = 8;
  std::string names;
  for (const StoredArray& array : arrays.first(std::min(arrays.size(), kMostNames)))
    names += fmt::format("{}'{}'", names.empty() ? "" : ", ", array.name);
  if (arrays.size() > kMostNames) names += fmt::format(" and {} more", arrays.size() - kMostNames);
  return names.empty() ? "none" : names;
}

namespace {

// Describes the arrays that belong to no sample, and those that cannot be read. The scan reports them with
// the object's first sample.
Format::LeftOutParts describe_left_out(std::span<const StoredArray> arrays, const SampleChoice& choice,
                                       const UnreadArrays& unread) {
  const bool names_labels =
      choice.labels_do_not_fit || choice.labels_are_no_integers || choice.labels_have_several_numbers;
  Format::LeftOutParts out = unread.parts;
  out.count += choice.left_out_count;
  if (!choice.first_left_out || (!names_labels && is_label_name(out.first_name))) return out;
  const StoredArray& first = arrays[*choice.first_left_out];
  const StoredArray& payload = arrays[choice.payload];
  out.first_name = first.name;
  out.reason = "";
  if (choice.labels_are_no_integers) out.reason = "labels whose type is not integer";
  if (choice.labels_have_several_numbers)
    out.reason = fmt::format("labels of {} numbers each, where one is expected: store the class number",
                             first.shape[1]);
  if (!choice.labels_do_not_fit) return out;
  if (choice.layout == SampleChoice::Layout::one_sample && payload.shape.size() == 1) {
    out.reason = fmt::format("whose {} labels do not fit '{}', which is one sample",
                             first.bytes / first.item_bytes, payload.name);
    return out;
  }
  const bool is_ranges = choice.layout == Layout::ranges;
  out.reason = fmt::format("whose {} labels do not fit the {} {} of '{}'", first.bytes / first.item_bytes,
                           is_ranges ? choice.samples : payload.shape[0], is_ranges ? "samples" : "rows",
                           payload.name);
  return out;
}

Result<void> check_field(const ObjectWindow& window, std::span<const StoredArray> arrays,
                         std::string_view field, UnreadArrays& unread) {
  for (const StoredArray& array : arrays)
    if (array.name == field) return success();
  for (UnreadArrays::Named& one : unread.errors)
    if (one.name == field) return std::move(one.error);
  return window.error(Errc::unsupported, 0,
                      fmt::format("it has no array '{}' of numbers; it has {}", field, list_arrays(arrays)));
}

// The arrays that are as large as the payload, which is the largest: one of them might be meant. The one that
// is named can be read; those of unsupported storage before it are not counted.
Result<Format::LeftOutParts> describe_equal(std::span<const StoredArray> arrays, const SampleChoice& choice,
                                            const LocateArray& locate) {
  Format::LeftOutParts out;
  for (const size_t i : choice.equal_arrays) {
    if (out.count == 0) {
      const Result<ArrayExtent> found = locate(i, false);
      if (!found.ok() && found.error().code == Errc::unsupported) continue;
      if (!found.ok()) return found.error();
    }
    if (out.count++ == 0) out.first_name = arrays[i].name;
  }
  if (out.count > 0) out.reason = arrays[choice.payload].name;
  return out;
}

// Calls `visit_sample` for each array of choice.sample_arrays, since each is one sample.
Result<void> scan_each(ObjectWindow& window, std::span<const StoredArray> arrays, const SampleChoice& choice,
                       Format::LeftOutParts left_out, const LocateArray& locate,
                       const Format::Visit& visit_sample) {
  for (const size_t i : choice.sample_arrays) {
    const StoredArray& array = arrays[i];
    PENSTOCK_ASSIGN(const ArrayExtent extent, locate(i, false));
    PENSTOCK_TRY(check_extent(window, array, extent, Layout::one_sample));
    const Placement placement{extent.offset, array.bytes};
    std::string_view codec = "raw";
    if (extent.item_bytes == 1 && array.shape.size() == 1) {
      PENSTOCK_ASSIGN(codec, codec_at(source_of(window, extent), placement));
    }
    PENSTOCK_ASSIGN(Format::FoundSample found, sample_at(extent, placement));
    found.codec = codec;
    found.arrays_left_out = std::exchange(left_out, {});
    visit_sample(found);
    PENSTOCK_TRY(finish(extent));
  }
  return success();
}

}  // namespace

Result<void> scan_arrays(ObjectWindow& window, std::span<const StoredArray> arrays, std::string_view field,
                         UnreadArrays unread, const LocateArray& locate, const Format::Visit& visit_sample) {
  if (!field.empty()) PENSTOCK_TRY(check_field(window, arrays, field, unread));
  const std::optional<SampleChoice> choice = choose_samples(arrays, field);
  const bool has_only_labels = field.empty() && (!choice || is_label_name(arrays[choice->payload].name));
  if (!unread.errors.empty() && has_only_labels) return std::move(unread.errors.front().error);
  if (!choice) return window.error(Errc::unsupported, 0, "contains no numeric array");
  PENSTOCK_TRY(check_sample_count(window, choice->samples));
  Format::LeftOutParts left_out = describe_left_out(arrays, *choice, unread);
  if (choice->layout == Layout::separate_arrays)
    return scan_each(window, arrays, *choice, std::move(left_out), locate, visit_sample);
  const StoredArray& payload = arrays[choice->payload];
  PENSTOCK_ASSIGN(Format::LeftOutParts equal_arrays, describe_equal(arrays, *choice, locate));
  PENSTOCK_ASSIGN(const ArrayExtent extent,
                  locate(choice->payload, choice->layout == Layout::rows && !payload.shape.empty()));
  PENSTOCK_TRY(check_extent(window, payload, extent, choice->layout));
  Integers range_bounds;
  Integers labels;
  bool has_labels = false;
  if (choice->offsets) {
    PENSTOCK_ASSIGN(range_bounds, Integers::read(window, arrays, *choice->offsets, locate));
  }
  if (choice->labels) {
    Result<Integers> read = Integers::read(window, arrays, *choice->labels, locate);
    has_labels = read.ok();
    if (read.ok())
      labels = *std::move(read);
    else if (read.error().code != Errc::unsupported)
      return read.error();
    else
      left_out = {.count = left_out.count + 1,
                  .first_name = arrays[*choice->labels].name,
                  .reason = fmt::format("labels that cannot be read ({})", read.error().what)};
  }
  const uint64_t item_count = payload.bytes / extent.item_bytes;
  const bool is_plain_bytes = extent.item_bytes == 1 && payload.shape.size() == 1;
  std::string_view codec = "raw";
  std::string label;
  for (uint64_t i = 0; i < choice->samples; ++i) {
    PENSTOCK_TRY(check_interrupt_at(i));
    Placement placement{extent.offset, payload.bytes};
    if (choice->layout == Layout::rows) placement = row_at(extent, i, payload.bytes / choice->samples);
    if (choice->layout == Layout::ranges) {
      if (range_bounds[i] > range_bounds[i + 1] || range_bounds[i + 1] > item_count)
        return window.corrupt(extent.offset, fmt::format("sample {} of '{}' from element {} to {} of {}", i,
                                                         payload.name, range_bounds.to_decimal(i),
                                                         range_bounds.to_decimal(i + 1), item_count));
      placement = {extent.offset + range_bounds[i] * extent.item_bytes,
                   (range_bounds[i + 1] - range_bounds[i]) * extent.item_bytes};
    }
    if (i == 0 && is_plain_bytes && choice->layout != Layout::rows) {
      PENSTOCK_ASSIGN(codec, codec_at(source_of(window, extent), placement));
    }
    if (has_labels) label = labels.to_decimal(i);
    PENSTOCK_ASSIGN(Format::FoundSample found, sample_at(extent, placement));
    found.label_name = label;
    found.codec = codec;
    found.array = payload.name;
    found.equal_arrays = std::exchange(equal_arrays, {});
    found.arrays_left_out = std::exchange(left_out, {});
    visit_sample(found);
  }
  return finish(extent);
}

}  // namespace penstock
