// Maps samples to arrays in formats that store arrays. A writer stores one array per field, for one sample or
// for all samples along a new first axis. A scan decides which arrays of an object are samples.
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

// Whether an array of this name contains labels. It does if the last part of the name is label, labels or y,
// also with the name of a split before or after it ("train_labels", "y_test").
bool is_label_name(std::string_view array_name);

// Fails with `invalid_argument` if a field's name cannot be the name of an array, or if two arrays would have
// the same name. The message calls the format `container`, such as "an .npz archive".
Result<void> check_array_names(std::span<const Field> fields, std::string_view container);

// An array that a writer will store in an object.
struct ArrayPlan {
  enum class Kind : uint8_t { field, offsets, labels };
  std::string name;
  Element element = Element::u8;
  std::vector<uint64_t> shape{};
  // The number of chunks in HDF5 into which the first dimension is divided; 0: contiguous. The chunks are
  // stored one after another, so they do not change the array's bytes.
  uint64_t chunks = 0;
  Kind kind = Kind::field;
  size_t field = 0;  // index of the field whose bytes or offsets the array contains
  uint64_t bytes() const;
};

// Collects the arrays of one object while its samples are added. It does not keep the payload (the first
// field), because the format writes the payload at once. If the object has several samples, it keeps their
// other fields in memory, up to kMostFieldBytes bytes.
class SampleArrays {
 public:
  // If `is_stacked`, each array has all samples one after another along a new first axis. Otherwise there is
  // one sample, and its arrays have the shapes of its fields.
  SampleArrays(const ObjectPlan& plan, bool is_stacked);

  // Adds a sample. `internal` if it does not match the plan, `unsupported` if more than kMostFieldBytes bytes
  // would have to be kept.
  Result<void> add(const SampleBytes& sample);
  // Fails with `internal` if not all samples of the plan have been added.
  Result<void> check_complete() const;

  // The arrays to write, the payload first. If the length of a field varies, its array is as long as all
  // samples added so far together. An array of labels comes last, if samples have labels and no field has the
  // name of a label array.
  std::vector<ArrayPlan> plans() const;
  // All bytes of an array, valid until the next call. If the object has one sample, those of a field come
  // from `sample`. If the object has several samples, `array` must not be the payload, whose bytes are not
  // kept.
  FieldBytes content(const ArrayPlan& array, const SampleBytes* sample);

  uint64_t samples() const { return samples_; }
  // Whether the length of every array is final: later samples cannot change it.
  bool lengths_known() const { return !varies_ || added_samples_ == samples_; }

  static constexpr uint64_t kMostFieldBytes = uint64_t{256} << 20;

 private:
  const std::string name_;
  const std::span<const Field> fields_;
  const uint64_t samples_;
  const bool is_stacked_;
  bool varies_ = false;  // whether any field has a variable length
  bool has_labels_ = false;
  uint64_t added_samples_ = 0;
  uint64_t buffered_bytes_ = 0;
  std::vector<std::vector<std::byte>> buffered_;  // for each field, the bytes of all samples so far
  std::vector<uint32_t> buffered_crc32c_;         // for each field, the checksum of its bytes in buffered_
  // For each field of variable length: the offsets that the object stores, as little-endian int64. They say
  // where each sample begins in the field's array and where the last one ends, in elements.
  std::vector<std::vector<std::byte>> offsets_;
  std::vector<uint64_t> lengths_;  // bytes of all samples so far, one per field
  std::vector<std::byte> labels_;
  std::span<const std::byte> piece_;  // the bytes to which the last result of content() refers
};

// An array that a scan found in an object. Any program may have made the object.
struct StoredArray {
  std::string name;
  std::vector<uint64_t> shape;
  uint64_t bytes = 0;
  bool is_integer = false;
  uint64_t item_bytes = 1;
};

// Says which arrays of an object contain samples, and how.
struct SampleChoice {
  enum class Layout : uint8_t { one_sample, rows, ranges, separate_arrays };
  Layout layout = Layout::one_sample;
  size_t payload = 0;  // index of the payload array
  uint64_t samples = 1;
  std::optional<size_t> offsets{};      // index of the offsets array, if layout is `ranges`
  std::optional<size_t> labels{};       // index of the array with one integer per sample
  std::vector<size_t> sample_arrays{};  // if layout is `separate_arrays`: the arrays that are one sample each
  // If no field was given: other arrays of as many bytes as the payload, which could have been taken instead.
  std::vector<size_t> equal_arrays{};
  // Number of arrays that belong to no sample. Labels that fit, offsets, statistics and further fields of the
  // samples are not counted. If the samples are rows or ranges, an array with one row per sample, or with
  // offsets of its own, is a further field. If the whole payload is one sample with labels, every array that
  // forms no series with the payload is a further field.
  uint64_t left_out_count = 0;
  // The index of the array that is named as left out: labels that do not fit the samples in number, or else
  // labels that are no integers or several numbers each, or else the first array that belongs to no sample.
  std::optional<size_t> first_left_out{};
  bool labels_do_not_fit = false;            // whether first_left_out refers to labels with a wrong number
  bool labels_are_no_integers = false;       // whether it refers to labels that are no integers
  bool labels_have_several_numbers = false;  // whether it refers to labels such as one-hot vectors
};

// Decides which arrays of an object are samples, or which parts of arrays. Returns nothing if there is no
// array. The payload is the largest array that contains no labels, offsets or statistics. If there is no such
// array, it is the largest that contains no statistics. If all arrays contain statistics, there are 0
// samples. The first rule that applies decides:
// 1. If there is an array of integers NAME_offsets, where NAME is the payload's name, samples are the ranges
//    of the payload between the offsets.
// 2. If the payload has several dimensions, each of its rows is a sample in four cases:
//    - The number of labels is the number of rows.
//    - Another array has one dimension and one entry per row, and no array of labels has exactly one entry.
//    - Every row has a label of several elements (such as a mask), and all arrays have the same number of
//      rows.
//    - There is no other array.
// 3. In an object without labels and offsets, the payload and the arrays like it are one sample each. They
//    are in natural order of their names (arr_2 before arr_10). An array is like the payload if it has the
//    same type and number of dimensions, and a name that differs from the payload's only in numbers. An array
//    of the same type and shape but another name is like the payload too, if all these arrays and the payload
//    are at least three.
// 4. Otherwise the payload is one sample.
//
// The labels of the payload are those in its group ("train/y" for "train/x"), or else those in the nearest
// group around it. The name of a split at either end of a name is such a group: "y_train" and "x_train",
// "train_labels" and "train_images". An array whose labels are not the payload's is no field of the payload's
// samples, and rule 2 ignores it.
//
// If `field` is not empty, the payload is the array of this name; nothing if there is none.
std::optional<SampleChoice> choose_samples(std::span<const StoredArray> arrays, std::string_view field = {});

}  // namespace penstock
