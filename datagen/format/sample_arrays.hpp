// What the samples of an object become in formats of arrays: one array a field, of one sample or of all of
// them along a new first axis; and the reverse, which arrays of an object are samples.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/sample/sample.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

inline constexpr std::string_view kLabelArray = "label";
inline constexpr std::string_view kOffsetsSuffix = "_offsets";
inline constexpr std::string_view kStatistics = "stats";  // describes samples, in any format

// Whether an array of this name holds labels: the last part of it is label, labels or y.
bool names_labels(std::string_view array_name);

// invalid_argument where arrays cannot be called as the fields are, or two would be called the same; `where`
// is "an .npz archive".
Result<void> check_array_names(std::span<const Field> fields, std::string_view where);

// One array of an object.
struct ArrayPlan {
  enum class Holds : std::uint8_t { field, offsets, labels };
  std::string name;
  Element element = Element::u8;
  std::vector<std::uint64_t> shape{};
  // For HDF5, the number of chunks: each has a part of the first side and all of the others; 0: contiguous.
  // The bytes are the same, one chunk after another.
  std::uint64_t chunks = 0;
  Holds holds = Holds::field;
  std::size_t field = 0;  // whose bytes or offsets
  std::uint64_t bytes() const;
};

// The arrays of one object while its samples come. The payload (the first field) is not kept: it goes into
// the object as it comes. The other fields of several samples are, up to kMostKept bytes.
class SampleArrays {
 public:
  // Not `stacked`: the one sample's arrays have its own shapes.
  SampleArrays(const ObjectPlan& plan, bool stacked);

  // `internal` where the sample is not what the plan says, `unsupported` beyond kMostKept.
  Result<void> add(const SampleBytes& sample);
  // That all samples have come.
  Result<void> complete() const;

  // Payload first; fields that vary have as many bytes as came so far. Labels come last, where samples have
  // some and no field is called so.
  std::vector<ArrayPlan> plans() const;
  // All bytes of an array that is not the payload's; `sample` is the only one where there is only one. Valid
  // until the next call.
  FieldBytes content(const ArrayPlan& array, const SampleBytes* sample);

  std::uint64_t samples() const { return samples_; }
  // Known before the last sample: no array's length hangs on what is still to come.
  bool lengths_known() const { return !varies_ || added_ == samples_; }

  static constexpr std::uint64_t kMostKept = std::uint64_t{256} << 20;

 private:
  const std::string name_;
  const std::span<const Field> fields_;
  const std::uint64_t samples_;
  const bool stacked_;
  bool varies_ = false;  // any of the fields
  bool labelled_ = false;
  std::uint64_t added_ = 0;
  std::uint64_t kept_bytes_ = 0;
  std::vector<std::vector<std::byte>> kept_;  // by field
  std::vector<std::uint32_t> kept_crc32c_;    // likewise
  std::vector<std::vector<std::byte>> ends_;  // by field: offsets in elements, as they are in the object
  std::vector<std::uint64_t> lengths_;        // by field: bytes of all samples so far
  std::vector<std::byte> labels_;
  std::span<const std::byte> piece_;  // of what content() returned
};

// An array that is in an object that perhaps somebody else made.
struct StoredArray {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
  bool integers = false;
  std::uint64_t item_bytes = 1;
};

// How an object's arrays are samples.
struct SampleChoice {
  enum class How : std::uint8_t { whole, rows, ranges, each };
  How how = How::whole;
  std::size_t payload = 0;  // index of the array
  std::uint64_t samples = 1;
  std::optional<std::size_t> offsets{};  // of ranges
  std::optional<std::size_t> labels{};   // an integer a sample
  std::vector<std::size_t> each{};       // sample n is the whole of array each[n]
  // Arrays that are neither samples nor anything that belongs to one: labels, statistics, another field with
  // as many rows or next to a single label.
  std::uint64_t left_out = 0;
  std::optional<std::size_t> first_left_out{};  // labels of another number, or else the first
  bool labels_do_not_fit = false;               // it is such labels
};

// The payload is the largest array that does not hold labels or offsets. With NAME_offsets next to it, its
// samples are the ranges between them. Where it has several dimensions, its rows are samples where there are
// as many labels, or, without a single label, where another array has one dimension of as many entries, or
// where labels are pictures and all arrays have as many rows, or where there is no other array. Else, in an
// object without labels and offsets, it and those like it are a sample each, in natural order of their names
// (arr_2 before arr_10): arrays of its type and shape, from three on, and arrays of its type and number of
// dimensions whose names differ from its own in nothing but numbers, from two on. Else it is one sample. None
// where there is no array.
//
// Labels are those of its group ("train/y" of "train/x") or, without any there, of the nearest group around
// it. They are not those of arrays that have others, nor are such arrays fields of its samples.
std::optional<SampleChoice> choose_samples(std::span<const StoredArray> arrays);

}  // namespace penstock
