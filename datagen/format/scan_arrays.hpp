// The samples of an object of arrays, whoever made it: what npz and hdf5 have in common when they scan.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_arrays.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {

// Where the bytes of an array lie: together, or in chunks of that many rows. All lie inside the object.
struct ArrayExtent {
  std::uint64_t offset = 0;  // of its first byte, where it has no chunks
  std::uint64_t item_bytes = 1;
  bool is_signed = false;
  bool big_endian = false;
  bool rows_apart = false;              // the bytes of a row do not lie together
  std::vector<std::uint64_t> chunks{};  // where each begins
  std::uint64_t rows_per_chunk = 1;
};

// "jpeg", "png" or "raw", by how a sample of plain bytes begins.
Result<std::string_view> codec_at(ByteWindow& window, const Placement& placement);

// `unsupported` for more samples than kMostSamplesAnObject: looked at before memory is taken for them.
Result<void> check_sample_count(const ByteWindow& window, std::uint64_t samples);

// For loops over samples that read nothing: Errc::interrupted when the user stops us.
inline Result<void> check_interrupt_at(std::uint64_t sample) {
  return sample % 65536 == 0 ? check_interrupt() : success();
}

// Calls `found` with every sample (choose_samples), with its label in decimal where there is one. `locate` is
// asked for the arrays that matter. `corrupt` where offsets do not ascend, `unsupported` where there is no
// array, samples do not lie together or are too many (check_sample_count).
Result<void> scan_arrays(ObjectWindow& window, std::span<const StoredArray> arrays,
                         const std::function<Result<ArrayExtent>(std::size_t array)>& locate,
                         const Format::Visit& found);

}  // namespace penstock
