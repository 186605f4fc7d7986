#include "datagen/format/sample_arrays.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "io_backends/backend/backend.hpp"

namespace penstock {
namespace {

void append_i64(std::vector<std::byte>& bytes, uint64_t value) {
  for (unsigned i = 0; i < 8; ++i) bytes.push_back(static_cast<std::byte>(value >> (8 * i)));
}

}  // namespace

Result<void> check_array_names(std::span<const Field> fields, std::string_view container) {
  std::set<std::string> names;
  for (const Field& field : fields) {
    const bool is_valid = check_object_name(field.name).ok();
    const bool is_unused =
        names.emplace(field.name).second &&
        (!field.varies || names.insert(fmt::format("{}{}", field.name, kOffsetsSuffix)).second);
    if (!is_valid || !is_unused)
      return make_error(Errc::invalid_argument, "{} cannot contain {} named '{}'", container,
                        is_valid ? "two arrays" : "an array", field.name);
  }
  return success();
}

uint64_t ArrayPlan::bytes() const {
  uint64_t bytes = element_bytes(element);
  for (const uint64_t side : shape) bytes *= side;
  return bytes;
}

SampleArrays::SampleArrays(const ObjectPlan& plan, bool is_stacked)
    : name_(plan.name),
      fields_(plan.fields),
      samples_(plan.samples),
      is_stacked_(is_stacked),
      varies_(std::any_of(fields_.begin(), fields_.end(), [](const Field& field) { return field.varies; })),
      buffered_(fields_.size()),
      buffered_crc32c_(fields_.size()),
      offsets_(fields_.size()),
      lengths_(fields_.size()) {
  for (size_t f = 0; f < fields_.size(); ++f)
    if (is_stacked_ && fields_[f].varies) append_i64(offsets_[f], 0);
}

Result<void> SampleArrays::add(const SampleBytes& sample) {
  if (added_samples_ == samples_ || sample.fields.size() != fields_.size())
    return make_error(Errc::internal, "one sample too many, or with other fields, for '{}'", name_);
  for (size_t f = 0; f < fields_.size(); ++f) {
    const FieldBytes& field = sample.fields[f];
    if (!fields_[f].varies && field.bytes != field_bytes(fields_[f]))
      return make_error(Errc::internal, "{} bytes for the {} of '{}' in '{}', not {}", field.bytes,
                        fields_[f].name, sample.key, name_, field_bytes(fields_[f]));
    lengths_[f] += field.bytes;
    if (is_stacked_ && fields_[f].varies)
      append_i64(offsets_[f], lengths_[f] / element_bytes(fields_[f].element));
    if (f == 0 || samples_ == 1) continue;
    buffered_bytes_ += field.bytes;
    if (buffered_bytes_ > kMostFieldBytes)
      return make_error(
          Errc::unsupported,
          "'{}' would need more than {} MiB of metadata in memory: put fewer samples into an object", name_,
          kMostFieldBytes >> 20U);
    buffered_crc32c_[f] = crc32c_of(field, buffered_crc32c_[f]);
    for (const std::span<const std::byte> piece : field.pieces)
      buffered_[f].insert(buffered_[f].end(), piece.begin(), piece.end());
  }
  const bool has_label =
      sample.label != kNoLabel && std::none_of(fields_.begin(), fields_.end(),
                                               [](const Field& field) { return is_label_name(field.name); });
  if (added_samples_ == 0) has_labels_ = has_label;
  if (has_label != has_labels_)
    return make_error(Errc::internal, "only some samples of '{}' have a label", name_);
  if (has_labels_) append_i64(labels_, sample.label);
  ++added_samples_;
  return success();
}

Result<void> SampleArrays::check_complete() const {
  if (added_samples_ == samples_ && added_samples_ > 0) return success();
  return make_error(Errc::internal, "{} samples for '{}', not {}", added_samples_, name_, samples_);
}

std::vector<ArrayPlan> SampleArrays::plans() const {
  std::vector<ArrayPlan> arrays;
  for (size_t f = 0; f < fields_.size(); ++f) {
    const Field& field = fields_[f];
    ArrayPlan array{
        .name = std::string(field.name), .element = field.element, .shape = field.shape, .field = f};
    if (field.one_chunk && !field.varies) array.chunks = is_stacked_ ? samples_ : 1;
    if (field.varies) {
      array.shape.assign(1 + (is_stacked_ ? 0 : field.trailing_ones), 1);
      array.shape.front() = lengths_[f] / element_bytes(field.element);
    } else if (is_stacked_) {
      array.shape.insert(array.shape.begin(), samples_);
    }
    arrays.push_back(std::move(array));
    if (field.varies && is_stacked_)
      arrays.push_back({.name = fmt::format("{}{}", field.name, kOffsetsSuffix),
                        .element = Element::i64,
                        .shape = {samples_ + 1},
                        .kind = ArrayPlan::Kind::offsets,
                        .field = f});
  }
  if (has_labels_)
    arrays.push_back({.name = std::string(kLabelArray),
                      .element = Element::i64,
                      .shape = {samples_},
                      .kind = ArrayPlan::Kind::labels});
  return arrays;
}

FieldBytes SampleArrays::content(const ArrayPlan& array, const SampleBytes* sample) {
  if (array.kind == ArrayPlan::Kind::field && samples_ == 1) return sample->fields[array.field];
  FieldBytes content{.pieces = {&piece_, 1}};
  if (array.kind == ArrayPlan::Kind::field) {
    piece_ = buffered_[array.field];
    content.crc32c = buffered_crc32c_[array.field];
  } else {
    piece_ = array.kind == ArrayPlan::Kind::offsets ? offsets_[array.field] : labels_;
  }
  content.bytes = piece_.size();
  return content;
}

}  // namespace penstock
