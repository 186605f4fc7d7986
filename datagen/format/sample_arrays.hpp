// Maps samples to the arrays that a writer stores: one array per field, for one sample or for all samples
// along a new first axis.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/format/sample_choice.hpp"
#include "datagen/sample/sample.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

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

}  // namespace penstock
