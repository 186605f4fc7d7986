// Maps samples to arrays in formats that store arrays. To write: one array per field, which contains one
// sample, or all samples along a new first axis. To scan: decides which arrays of an object are samples.
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
// An array of this name describes samples, in any format.
inline constexpr std::string_view kStatistics = "stats";

// Whether an array of this name contains labels: the last part of its name is label, labels or y.
bool is_label_name(std::string_view array_name);

// `invalid_argument` if a field's name cannot be the name of an array, or if two arrays would have the same
// name. `container` is used in the message: "an .npz archive".
Result<void> check_array_names(std::span<const Field> fields, std::string_view container);

// One array of an object.
struct ArrayPlan {
  enum class Kind : std::uint8_t { field, offsets, labels };
  std::string name;
  Element element = Element::u8;
  std::vector<std::uint64_t> shape{};
  // For HDF5, the number of chunks. Each chunk has a part of the first dimension and all of the others. 0:
  // contiguous. The bytes are the same, because one chunk follows another.
  std::uint64_t chunks = 0;
  Kind kind = Kind::field;
  std::size_t field = 0;  // index of the field whose bytes or offsets it contains
  std::uint64_t bytes() const;
};

// The arrays of one object while its samples are added. The payload (the first field) is not kept in memory:
// the format writes it at once. Other fields are kept, up to kMostBuffered bytes, if the object has several
// samples.
class SampleArrays {
 public:
  // `stacked`: samples are stacked along a new first axis. If false, there is one sample, and its arrays have
  // the shapes of its fields.
  SampleArrays(const ObjectPlan& plan, bool stacked);

  // `internal` if the sample does not match the plan, `unsupported` if more than kMostBuffered bytes would be
  // kept.
  Result<void> add(const SampleBytes& sample);
  // An error if not all samples have been added.
  Result<void> complete() const;

  // The payload first. A field of variable length counts the bytes that were added so far. Labels come last,
  // if samples have labels and no field uses that name.
  std::vector<ArrayPlan> plans() const;
  // All bytes of an array other than the payload. `sample` is the sample of an object that has only one.
  // Valid until the next call.
  FieldBytes content(const ArrayPlan& array, const SampleBytes* sample);

  std::uint64_t samples() const { return samples_; }
  // Whether the length of every array is known: no sample that is still to come can change it.
  bool lengths_known() const { return !varies_ || added_ == samples_; }

  static constexpr std::uint64_t kMostBuffered = std::uint64_t{256} << 20;

 private:
  const std::string name_;
  const std::span<const Field> fields_;
  const std::uint64_t samples_;
  const bool stacked_;
  bool varies_ = false;  // whether any field has a variable length
  bool labelled_ = false;
  std::uint64_t added_ = 0;
  std::uint64_t buffered_bytes_ = 0;
  std::vector<std::vector<std::byte>> buffered_;  // one per field
  std::vector<std::uint32_t> buffered_crc32c_;    // one per field
  // One per field: offsets in elements, as the object stores them.
  std::vector<std::vector<std::byte>> offsets_;
  std::vector<std::uint64_t> lengths_;  // one per field: bytes of all samples so far
  std::vector<std::byte> labels_;
  std::span<const std::byte> piece_;  // storage for the result of content()
};

// An array that a scan found in an object. Any program may have made the object.
struct StoredArray {
  std::string name;
  std::vector<std::uint64_t> shape;
  std::uint64_t bytes = 0;
  bool integers = false;
  std::uint64_t item_bytes = 1;
};

// Which arrays of an object are samples, and how.
struct SampleChoice {
  enum class Layout : std::uint8_t { whole, rows, ranges, separate_arrays };
  Layout layout = Layout::whole;
  std::size_t payload = 0;  // index of the array
  std::uint64_t samples = 1;
  std::optional<std::size_t> offsets{};      // index of the offsets array, for `ranges`
  std::optional<std::size_t> labels{};       // index of the array with one integer per sample
  std::vector<std::size_t> sample_arrays{};  // for `separate_arrays`, one per sample
  // Number of arrays that belong to no sample. Labels, statistics and further fields of samples do not count.
  // An array is a further field if it has the same number of rows, or if there is only one label.
  std::uint64_t left_out = 0;
  // Labels whose number does not match, or else the first such array.
  std::optional<std::size_t> first_left_out{};
  bool labels_do_not_fit = false;  // whether first_left_out is such labels
};

// Chooses the samples of an object. The payload is the largest array that contains no labels or offsets.
//
// The first rule that matches decides:
// 1. With NAME_offsets next to the payload, its samples are the ranges between the offsets.
// 2. A payload of several dimensions has one sample per row in four cases:
//    - The number of labels is the number of rows.
//    - There is no single label, and another array has one dimension and one entry per row.
//    - Labels are pictures, and all arrays have the same number of rows.
//    - There is no other array.
// 3. In an object without labels and offsets, the payload and arrays like it are one sample each. They are in
//    natural order of their names (arr_2 before arr_10). Arrays of the same type and shape count if there are
//    at least three. Arrays of the same type and number of dimensions count if there are at least two, and if
//    their names differ only in numbers.
// 4. Otherwise the payload is one sample.
// Returns nothing if there is no array.
//
// Labels come from the payload's group ("train/y" for "train/x"), or else from the nearest group around it.
// Labels never apply to arrays that have other labels. Such arrays are no fields of the payload's samples
// either.
std::optional<SampleChoice> choose_samples(std::span<const StoredArray> arrays);

}  // namespace penstock
