// Finds the samples in an object that contains arrays. Any program may have made the object. All formats that
// store arrays use this file.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_choice.hpp"
#include "datagen/format/unpacked_window.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {

// Where the bytes of an array are: contiguous, or in chunks of rows_per_chunk rows each, or stored in another
// form. All bytes are inside the object.
struct ArrayExtent {
  uint64_t offset = 0;  // offset of the first byte, if there are no chunks; in `unpacked`, if that is set
  uint64_t item_bytes = 1;
  bool is_signed = false;
  bool big_endian = false;
  bool rows_are_split = false;     // whether the bytes of one row are not contiguous
  std::vector<uint64_t> chunks{};  // offset of each chunk
  uint64_t rows_per_chunk = 1;
  // Set if the bytes are not in the object as they are: the window on them. Then the members above for chunks
  // are not used.
  std::shared_ptr<UnpackedWindow> unpacked{};
};

// The codec of a sample that is stored as plain bytes: "jpeg", "png" or "raw", by its first bytes.
Result<std::string_view> codec_at(ByteWindow& window, const Placement& placement);

// Fails with `unsupported` if `samples` is more than kMostSamplesPerObject. Call it before memory is
// allocated for the samples.
Result<void> check_sample_count(const ByteWindow& window, uint64_t samples);

// Returns Errc::interrupted when the user has stopped the program. Without it, a loop over samples that does
// no I/O would not notice the stop. To be fast, it really checks only if `sample` is a multiple of 65536.
inline Result<void> check_interrupt_at(uint64_t sample) {
  return sample % 65536 == 0 ? check_interrupt() : success();
}

// Arrays of an object that cannot be read. They are counted, and the first is named, or rather the first that
// has labels.
struct UnreadArrays {
  // `error` says why: the object has no samples if it has no other arrays than these and labels.
  void add(std::string_view name, std::string_view reason, std::optional<Error> error = {}) {
    if (parts.count++ == 0 || (is_label_name(name) && !is_label_name(parts.first_name))) {
      parts.first_name = name;
      parts.reason = reason;
    }
    if (error) errors.push_back({std::string(name), *std::move(error)});
  }
  struct Named {
    std::string name;
    Error error;
  };
  Format::LeftOutParts parts;
  std::vector<Named> errors;
};

// The names of the first arrays in quotes, and how many more there are; "none" if there are none.
std::string list_arrays(std::span<const StoredArray> arrays);

using LocateArray = std::function<Result<ArrayExtent>(size_t array, bool by_rows)>;

// Calls `visit_sample` for every sample that choose_samples() chooses, with its label in decimal if it has
// one. Calls `locate` to learn where the bytes of an array are, but only for the arrays that it needs. If
// `by_rows`, it is enough if the bytes of each row are together. If `field` is not empty, samples are taken
// from the array of this name. Errors: `corrupt` if an offset is smaller than the one before it, or leads
// past the end of the payload. `unsupported` labels are left out; otherwise `unsupported` if there is no
// array, or none called `field`, if `unread` has an error and there are no arrays but labels (and no
// `field`), if the bytes of a sample are not contiguous, or if there are too many samples
// (check_sample_count).
Result<void> scan_arrays(ObjectWindow& window, std::span<const StoredArray> arrays, std::string_view field,
                         UnreadArrays unread, const LocateArray& locate, const Format::Visit& visit_sample);

}  // namespace penstock
