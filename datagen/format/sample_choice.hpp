// Decides which arrays of an object are samples. Any program may have made the object. All formats that store
// arrays use this.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

inline constexpr std::string_view kLabelArray = "label";
inline constexpr std::string_view kOffsetsSuffix = "_offsets";
// In every format, an array of this name contains statistics of the samples.
inline constexpr std::string_view kStatisticsName = "stats";

// Whether an array of this name contains labels. It does if the last part of the name is label, labels or y,
// also with the name of a split before or after it ("train_labels", "y_test").
bool is_label_name(std::string_view array_name);

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
  std::optional<size_t> offsets{};  // index of the offsets array, if layout is `ranges`
  std::optional<size_t> labels{};   // index of the array with one integer per sample; the last, if several
  std::vector<size_t> sample_arrays{};  // if layout is `separate_arrays`: the arrays that are one sample each
  // If no field was given: other arrays of as many bytes as the payload, which could have been taken instead.
  std::vector<size_t> equal_arrays{};
  // Number of arrays that belong to no sample. The labels, offsets, statistics and further fields of the
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
