#include "datagen/format/sample_choice.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

namespace penstock {
namespace {

std::string_view last_part(std::string_view array_name) {
  return array_name.substr(array_name.rfind('/') + 1);
}

// An array's own name, without the split of the data set that it belongs to, and that split: "images" and
// "train" of "train_images", "x" and "test" of "x_test".
struct NameOfSplit {
  std::string_view own;
  std::string_view split;  // "": it names none
};

NameOfSplit take_split(std::string_view name) {
  constexpr std::string_view kSplits[] = {"train", "training", "test",       "testing",
                                          "val",   "valid",    "validation", "dev"};
  const size_t before = name.find('_');
  const size_t after = name.rfind('_');
  if (before == std::string_view::npos) return {name, {}};
  for (const std::string_view split : kSplits) {
    if (name.substr(0, before) == split) return {name.substr(before + 1), split};
    if (name.substr(after + 1) == split) return {name.substr(0, after), split};
  }
  return {name, {}};
}

// The name with its split as a group: "train/images" for "train_images", "train/x_offsets" for
// "x_train_offsets".
std::string with_split_as_group(std::string_view name) {
  const std::string_view last = last_part(name);
  const bool is_offsets = last.ends_with(kOffsetsSuffix);
  const auto [own, split] =
      take_split(is_offsets ? last.substr(0, last.size() - kOffsetsSuffix.size()) : last);
  if (split.empty()) return std::string(name);
  return fmt::format("{}{}/{}{}", name.substr(0, name.size() - last.size()), split, own,
                     is_offsets ? kOffsetsSuffix : "");
}

uint64_t element_count(const StoredArray& array) {
  uint64_t count = 1;
  for (const uint64_t side : array.shape)
    if (__builtin_mul_overflow(count, side, &count)) return UINT64_MAX;
  return count;
}

bool is_integer_list(const StoredArray& array) {
  return array.is_integer && array.shape.size() == 1 && array.shape[0] > 0;
}

// For each array of an object, by its number: its offsets, and whether it is the offsets of another array.
struct OffsetArrays {
  explicit OffsetArrays(std::span<const StoredArray> arrays)
      : offsets_of(arrays.size()), is_offsets(arrays.size()) {
    std::set<std::string_view> names;
    std::map<std::string_view, size_t> first_offsets;
    for (const StoredArray& array : arrays) names.insert(array.name);
    for (size_t i = 0; i < arrays.size(); ++i) {
      const std::string_view name = arrays[i].name;
      if (!name.ends_with(kOffsetsSuffix)) continue;
      const std::string_view described = name.substr(0, name.size() - kOffsetsSuffix.size());
      is_offsets[i] = names.contains(described);
      if (is_integer_list(arrays[i])) first_offsets.emplace(described, i);
    }
    for (size_t i = 0; i < arrays.size(); ++i)
      if (const auto found = first_offsets.find(arrays[i].name); found != first_offsets.end())
        offsets_of[i] = found->second;
  }

  std::vector<std::optional<size_t>> offsets_of;  // a list of whole numbers; the first, if there are several
  std::vector<bool> is_offsets;
};

std::optional<size_t> largest_array(std::span<const StoredArray> arrays, const OffsetArrays& offsets,
                                    bool include_labels) {
  std::optional<size_t> best;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (last_part(arrays[i].name) == kStatisticsName) continue;
    if (!include_labels && (is_label_name(arrays[i].name) || offsets.is_offsets[i])) continue;
    if (!best || arrays[i].bytes > arrays[*best].bytes) best = i;
  }
  return best;
}

std::optional<size_t> array_called(std::span<const StoredArray> arrays, std::string_view name) {
  for (size_t i = 0; i < arrays.size(); ++i)
    if (arrays[i].name == name) return i;
  return std::nullopt;
}

// The other arrays of as many bytes as the payload that largest_array() could have returned.
std::vector<size_t> arrays_as_large(std::span<const StoredArray> arrays, const OffsetArrays& offsets,
                                    size_t payload) {
  std::vector<size_t> out;
  for (size_t i = 0; i < arrays.size(); ++i)
    if (i != payload && arrays[i].bytes == arrays[payload].bytes &&
        last_part(arrays[i].name) != kStatisticsName && !is_label_name(arrays[i].name) &&
        !offsets.is_offsets[i])
      out.push_back(i);
  return out;
}

}  // namespace

bool is_label_name(std::string_view array_name) {
  const std::string_view last = take_split(last_part(array_name)).own;
  return last == "label" || last == "labels" || last == "y";
}

namespace {

// Says for each array whether it can belong to the samples in the array `payload`. It cannot if its labels
// are not the payload's labels. The labels of an array are those in its group, or else those in the nearest
// group around it.
std::vector<bool> may_belong_to_samples(std::span<const StoredArray> arrays, size_t payload) {
  const auto group_of = [](std::string_view name) {
    const size_t slash = name.rfind('/');
    return slash == std::string_view::npos ? std::string_view{} : name.substr(0, slash);
  };
  std::set<std::string_view> labelled_groups;
  for (const StoredArray& array : arrays)
    if (is_label_name(array.name)) labelled_groups.insert(group_of(array.name));
  const auto label_group_of = [&](std::string_view name) -> std::optional<std::string_view> {
    constexpr int kMostGroups = 64;  // groups that are searched: hostile names may have thousands of parts
    std::string_view group = group_of(name);
    for (int i = 0; i < kMostGroups; ++i, group = group_of(group)) {
      if (labelled_groups.contains(group)) return group;
      if (group.empty()) break;
    }
    return std::nullopt;
  };
  const auto payload_label_group = label_group_of(arrays[payload].name);
  std::vector<bool> out(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const auto label_group = label_group_of(arrays[i].name);
    out[i] = !label_group || label_group == payload_label_group;
  }
  return out;
}

// Whether each row of the payload is a sample. The payload must have at least two dimensions and a byte per
// row, and at least one of these conditions must be true. They ignore arrays that cannot belong to the
// payload's samples (`may_belong`), and scalars that are no label, since these describe the whole file.
// - There is one label per row.
// - There is no other array.
// - A one-dimensional array has one entry per row, and no array of labels has exactly one entry.
// - Every row has a label of several elements (such as a mask), and all arrays have the same number of rows.
bool rows_are_samples(std::span<const StoredArray> arrays, size_t payload,
                      const std::vector<bool>& may_belong) {
  const StoredArray& array = arrays[payload];
  // A one-dimensional payload is one sample, such as a signal. If another array has the same length, it
  // describes the elements of the signal, for example their times.
  if (array.shape.size() < 2) return false;
  // Every row must have at least one byte. The shape of an array without bytes could claim any number of
  // rows.
  if (array.shape[0] > array.bytes) return false;
  bool is_only_array = true;
  bool has_single_label = false;
  bool has_1d_array_of_same_rows = false;
  bool has_labels_of_same_rows = false;
  bool all_have_same_rows = true;
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (i == payload || !may_belong[i]) continue;
    const bool is_attribute = arrays[i].shape.empty() && !is_label_name(arrays[i].name);
    if (is_attribute) continue;
    const bool has_same_rows = !arrays[i].shape.empty() && arrays[i].shape[0] == array.shape[0];
    const bool is_label = is_label_name(arrays[i].name);
    if (is_label && element_count(arrays[i]) == array.shape[0]) return true;
    is_only_array = false;
    has_single_label = has_single_label || (is_label && element_count(arrays[i]) == 1);
    has_1d_array_of_same_rows = has_1d_array_of_same_rows || (has_same_rows && arrays[i].shape.size() == 1);
    has_labels_of_same_rows = has_labels_of_same_rows || (is_label && has_same_rows);
    all_have_same_rows = all_have_same_rows && has_same_rows;
  }
  return is_only_array || (has_1d_array_of_same_rows && !has_single_label) ||
         (has_labels_of_same_rows && all_have_same_rows);
}

// The digits at the start of `text`.
std::string_view leading_digits(std::string_view text) {
  return text.substr(0, text.find_first_not_of("0123456789"));
}

// Replaces each number by 0: "arr_12" becomes "arr_0". Names that differ only in numbers give the same
// result.
std::string without_numbers(std::string_view name) {
  std::string out;
  while (!name.empty()) {
    const size_t digits = leading_digits(name).size();
    out += digits > 0 ? '0' : name.front();
    name.remove_prefix(std::max<size_t>(digits, 1));
  }
  return out;
}

// Orders names naturally: compares numbers by value and other characters by byte.
bool natural_less(std::string_view a, std::string_view b) {
  const std::string_view name_a = a;
  const std::string_view name_b = b;
  while (!a.empty() && !b.empty()) {
    std::string_view digits_a = leading_digits(a);
    std::string_view digits_b = leading_digits(b);
    if (digits_a.empty() || digits_b.empty()) {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
      continue;
    }
    a.remove_prefix(digits_a.size());
    b.remove_prefix(digits_b.size());
    digits_a.remove_prefix(std::min(digits_a.find_first_not_of('0'), digits_a.size()));
    digits_b.remove_prefix(std::min(digits_b.find_first_not_of('0'), digits_b.size()));
    if (digits_a.size() != digits_b.size()) return digits_a.size() < digits_b.size();
    if (digits_a != digits_b) return digits_a < digits_b;
  }
  return a.empty() == b.empty() ? name_a < name_b : a.empty();
}

// Returns the payload and the arrays like it, if each of them is one sample (rule 3 of choose_samples()), in
// natural order of their names. Returns nothing if no array is like the payload, or if the object has labels
// or offsets.
std::vector<size_t> samples_like(std::span<const StoredArray> arrays, const OffsetArrays& offsets,
                                 size_t payload) {
  const StoredArray& first = arrays[payload];
  const std::string series = without_numbers(first.name);
  std::vector<size_t> numbered;
  std::vector<size_t> similar;
  for (size_t i = 0; i < arrays.size(); ++i) {
    const StoredArray& array = arrays[i];
    if (is_label_name(array.name) || offsets.is_offsets[i]) return {};
    if (last_part(array.name) == kStatisticsName || array.is_integer != first.is_integer ||
        array.item_bytes != first.item_bytes)
      continue;
    const bool in_series = array.shape.size() == first.shape.size() && without_numbers(array.name) == series;
    if (in_series) numbered.push_back(i);
    if (in_series || array.shape == first.shape) similar.push_back(i);
  }
  // Two arrays of the same shape may be two fields of one sample, such as a signal and its time axis. So if
  // the names differ in more than numbers, at least three arrays are needed.
  constexpr size_t kMinArrays = 3;
  std::vector<size_t> samples = similar.size() >= kMinArrays ? std::move(similar) : std::move(numbered);
  if (samples.size() < 2) return {};
  std::sort(samples.begin(), samples.end(),
            [&](size_t a, size_t b) { return natural_less(arrays[a].name, arrays[b].name); });
  return samples;
}

// Whether array `i` is a list of labels that does not fit. It fits if its length is the number of samples. If
// the samples are not ranges of the payload, it also fits if its length is that of a dimension of the
// payload with several dimensions.
bool labels_do_not_fit(std::span<const StoredArray> arrays, const OffsetArrays& offsets, size_t i,
                       const SampleChoice& choice) {
  const StoredArray& labels = arrays[i];
  if (!labels.is_integer || !is_label_name(labels.name)) return false;
  const uint64_t count = element_count(labels);
  const auto equals_count = [count](uint64_t side) { return side == count; };
  const bool is_list = std::any_of(labels.shape.begin(), labels.shape.end(), equals_count);
  if (!is_list || count == choice.samples || offsets.offsets_of[i]) return false;
  if (choice.layout == SampleChoice::Layout::ranges) return true;
  const std::vector<uint64_t>& payload_shape = arrays[choice.payload].shape;
  // A label for each number of a line: the line may be a signal, or a table of one column. It is taken as one
  // sample, so the labels are reported.
  if (payload_shape.size() == 1)
    return choice.layout == SampleChoice::Layout::one_sample && count == payload_shape[0];
  return payload_shape.size() > 1 && std::none_of(payload_shape.begin(), payload_shape.end(), equals_count);
}

// Marks the payload and the arrays that form a series of samples with it. These arrays have the type of the
// payload and its number of dimensions, and their names differ from its name only in numbers. If the series
// has fewer than three arrays, including the payload, marks none, because they may be fields of one sample.
std::vector<bool> find_series(std::span<const StoredArray> arrays, size_t payload,
                              const std::vector<bool>& may_belong) {
  constexpr ptrdiff_t kMinArrays = 3;
  const StoredArray& first = arrays[payload];
  const std::string series = without_numbers(first.name);
  std::vector<bool> out(arrays.size());
  for (size_t i = 0; i < arrays.size(); ++i) {
    const StoredArray& other = arrays[i];
    out[i] = may_belong[i] && other.is_integer == first.is_integer && other.item_bytes == first.item_bytes &&
             other.shape.size() == first.shape.size() && without_numbers(other.name) == series;
  }
  return std::count(out.begin(), out.end(), true) < kMinArrays ? std::vector<bool>(arrays.size()) : out;
}

void find_left_out(std::span<const StoredArray> arrays, const OffsetArrays& offsets,
                   const std::vector<bool>& may_belong, SampleChoice& choice) {
  using Layout = SampleChoice::Layout;
  std::vector<bool> is_sample(arrays.size());
  is_sample[choice.payload] = true;
  for (const size_t i : choice.sample_arrays) is_sample[i] = true;
  bool has_labels = false;
  for (size_t i = 0; i < arrays.size(); ++i)
    has_labels = has_labels || (may_belong[i] && is_label_name(arrays[i].name) &&
                                !labels_do_not_fit(arrays, offsets, i, choice));
  const std::vector<bool> series = choice.layout == Layout::one_sample
                                       ? find_series(arrays, choice.payload, may_belong)
                                       : std::vector<bool>();
  const auto is_second_label = [&](size_t i) {
    return choice.labels && i != *choice.labels && arrays[i].is_integer &&
           element_count(arrays[i]) == choice.samples;
  };
  const auto is_part_of_samples = [&](size_t i) {
    const StoredArray& array = arrays[i];
    if (is_label_name(array.name)) return !is_second_label(i);
    if (offsets.is_offsets[i]) return is_integer_list(array);
    switch (choice.layout) {
      case Layout::separate_arrays:
        return false;
      case Layout::one_sample:
        return has_labels && !series[i];
      case Layout::rows:
      case Layout::ranges:
        return !array.shape.empty() && (array.shape[0] == choice.samples || offsets.offsets_of[i]);
    }
    return false;
  };
  for (size_t i = 0; i < arrays.size(); ++i) {
    if (is_sample[i] || last_part(arrays[i].name) == kStatisticsName) continue;
    const bool are_misfit_labels = may_belong[i] && labels_do_not_fit(arrays, offsets, i, choice);
    // Labels that could be used if they were integers: one for each of several samples.
    const bool are_labels = may_belong[i] && is_label_name(arrays[i].name) && choice.samples > 1;
    const bool are_no_integers =
        are_labels && !arrays[i].is_integer && element_count(arrays[i]) == choice.samples;
    // A label with more dimensions is a picture, such as a mask, and a field of its sample.
    const std::vector<uint64_t>& shape = arrays[i].shape;
    const bool have_several_numbers =
        are_labels && shape.size() == 2 && shape[0] == choice.samples && shape[1] > 1;
    const bool are_unread_labels = are_no_integers || have_several_numbers;
    if (may_belong[i] && !are_misfit_labels && !are_unread_labels && is_part_of_samples(i)) continue;
    ++choice.left_out_count;
    const bool names_labels = choice.labels_are_no_integers || choice.labels_have_several_numbers;
    const bool says_more =
        !choice.labels_do_not_fit && (are_misfit_labels || (are_unread_labels && !names_labels));
    if (choice.first_left_out && !says_more) continue;
    choice.first_left_out = i;
    choice.labels_do_not_fit = are_misfit_labels;
    choice.labels_are_no_integers = are_no_integers;
    choice.labels_have_several_numbers = have_several_numbers;
  }
}

}  // namespace

std::optional<SampleChoice> choose_samples(std::span<const StoredArray> stored_arrays,
                                           std::string_view field) {
  std::vector<StoredArray> arrays(stored_arrays.begin(), stored_arrays.end());
  for (StoredArray& array : arrays) array.name = with_split_as_group(array.name);
  const OffsetArrays offsets(arrays);
  auto payload = field.empty() ? largest_array(arrays, offsets, false) : array_called(stored_arrays, field);
  if (!payload && field.empty()) payload = largest_array(arrays, offsets, true);
  // the object contains only statistics, so it has no samples
  if (!payload && field.empty() && !arrays.empty()) return SampleChoice{.samples = 0};
  if (!payload) return std::nullopt;
  SampleChoice choice{.payload = *payload};
  const std::vector<bool> may_belong = may_belong_to_samples(arrays, *payload);
  choice.offsets = offsets.offsets_of[*payload];
  if (choice.offsets) {
    choice.layout = SampleChoice::Layout::ranges;
    choice.samples = arrays[*choice.offsets].shape[0] - 1;
  } else if (rows_are_samples(arrays, *payload, may_belong)) {
    choice.layout = SampleChoice::Layout::rows;
    choice.samples = arrays[*payload].shape[0];
  } else if (field.empty()) {
    choice.sample_arrays = samples_like(arrays, offsets, *payload);
  }
  if (!choice.sample_arrays.empty()) {
    choice.layout = SampleChoice::Layout::separate_arrays;
    choice.samples = choice.sample_arrays.size();
  }
  for (size_t i = 0; i < arrays.size(); ++i)
    if (i != *payload && may_belong[i] && arrays[i].is_integer && is_label_name(arrays[i].name) &&
        element_count(arrays[i]) == choice.samples)
      choice.labels = i;
  find_left_out(arrays, offsets, may_belong, choice);
  if (field.empty() && choice.sample_arrays.empty() && !is_label_name(arrays[*payload].name))
    choice.equal_arrays = arrays_as_large(arrays, offsets, *payload);
  return choice;
}

}  // namespace penstock
