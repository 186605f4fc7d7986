// Maps samples to arrays in formats that store arrays. Writers store one array per field, with one sample or
// with all samples along a new first axis. Scans decide which arrays of an object are samples.
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
// In every format, an array of this name contains statistics of the samples.
inline constexpr std::string_view kStatisticsName = "stats";

// Whether an array of this name contains labels: the last part of its name is label, labels or y.
bool is_label_name(std::string_view array_name);

// `invalid_argument` if a field's name cannot be the name of an array, or if two arrays would have the same
// name. `container` is the format's text in the message: "an .npz archive".
Result<void> check_array_names(std::span<const Field> fields, std::string_view container);

// An array that a writer will store in an object.
struct ArrayPlan {
  enum class Kind : uint8_t { field, offsets, labels };
  std::string name;
  Element element = Element::u8;
  std::vector<uint64_t> shape{};
  // The number of chunks in HDF5; 0: contiguous. Each chunk has a part of the first dimension and all of the
  // others. Chunks do not change the bytes, because one chunk follows another.
  uint64_t chunks = 0;
  Kind kind = Kind::field;
  size_t field = 0;  // index of the field whose bytes or offsets the array contains
  uint64_t bytes() const;
};

// The arrays of one object while its samples are added. Does not keep the payload (the first field) in
// memory: the format writes it at once. Keeps the other fields, up to kMostFieldBytes bytes, if the object
// has several samples.
class SampleArrays {
 public:
  // `is_stacked`: samples are stacked along a new first axis. Otherwise there is one sample, and its arrays
  // have the shapes of its fields.
  SampleArrays(const ObjectPlan& plan, bool is_stacked);

  // `internal` if the sample does not match the plan, `unsupported` if more than kMostFieldBytes bytes would
  // be kept.
  Result<void> add(const SampleBytes& sample);
  // `internal` if not all samples have been added.
  Result<void> check_complete() const;

  // The arrays to write, the payload first. A field of variable length has the bytes that were added so far.
  // Labels come last, if samples have labels and no field uses that name.
  std::vector<ArrayPlan> plans() const;
  // All bytes of an array. If the object has only one sample, it is `sample`. Otherwise the array must not be
  // the payload. Valid until the next call.
  FieldBytes content(const ArrayPlan& array, const SampleBytes* sample);

  uint64_t samples() const { return samples_; }
  // Whether the length of every array is known, so that later samples cannot change it.
  bool lengths_known() const { return !varies_ || added_ == samples_; }

  static constexpr uint64_t kMostFieldBytes = uint64_t{256} << 20;

 private:
  const std::string name_;
  const std::span<const Field> fields_;
  const uint64_t samples_;
  const bool is_stacked_;
  bool varies_ = false;  // whether any field has a variable length
  bool has_labels_ = false;
  uint64_t added_ = 0;
  uint64_t buffered_bytes_ = 0;
  std::vector<std::vector<std::byte>> buffered_;  // one per field
  std::vector<uint32_t> buffered_crc32c_;         // one per field
  // Offsets in elements, as the object stores them. One per field.
  std::vector<std::vector<std::byte>> offsets_;
  std::vector<uint64_t> lengths_;  // bytes of all samples so far, one per field
  std::vector<std::byte> labels_;
  std::span<const std::byte> piece_;  // storage for the result of content()
};

// An array that a scan found in an object. Any program may have made the object.
struct StoredArray {
  std::string name;
  std::vector<uint64_t> shape;
  uint64_t bytes = 0;
  bool is_integer = false;
  uint64_t item_bytes = 1;
};

// Which arrays of an object are samples, and how.
struct SampleChoice {
  enum class Layout : uint8_t { one_sample, rows, ranges, separate_arrays };
  Layout layout = Layout::one_sample;
  size_t payload = 0;  // index of the payload array
  uint64_t samples = 1;
  std::optional<size_t> offsets{};      // index of the offsets array, for `ranges`
  std::optional<size_t> labels{};       // index of the array with one integer per sample
  std::vector<size_t> sample_arrays{};  // indexes of the arrays, one per sample, for `separate_arrays`
  // Number of arrays that belong to no sample. Does not count labels, statistics and further fields of
  // samples. An array is a further field if it has the same number of rows, or if there is only one label.
  uint64_t left_out_count = 0;
  // Index of the labels whose number does not match, or else of the first array that belongs to no sample.
  std::optional<size_t> first_left_out{};
  bool labels_do_not_fit = false;  // whether first_left_out is labels whose number does not match
};

// Chooses the samples of an object. The payload is the largest array that contains no labels or offsets.
//
// The first rule that matches decides:
// 1. With NAME_offsets next to the payload, its samples are the ranges between the offsets.
// 2. A payload of several dimensions has one sample per row in four cases:
//    - The number of labels is the number of rows.
//    - Another array has one dimension and one entry per row, and no array has exactly one label.
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
// These labels never apply to arrays that have other labels. Such arrays are not fields of the payload's
// samples either.
std::optional<SampleChoice> choose_samples(std::span<const StoredArray> arrays);

}  // namespace penstock
