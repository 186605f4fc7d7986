// The samples of an object of arrays, whoever made it: what npz and hdf5 have in common when they scan.
#pragma once

#include <cstdint>
#include <functional>
#include <string_view>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/format/object_window.hpp"
#include "datagen/format/sample_arrays.hpp"
#include "io_backends/base/result.hpp"

namespace penstock {

struct ScannedArray {
  StoredArray stored;
  std::uint64_t offset = 0;  // of its first byte; all its bytes lie inside the object
  std::uint64_t item_bytes = 1;
  bool is_signed = false;
  bool big_endian = false;
  bool rows_apart = false;            // the bytes of a row do not lie together
  std::vector<std::uint64_t> rows{};  // where each row begins, when they do not follow one another
};

// "jpeg", "png" or "raw", by how a sample of plain bytes begins.
Result<std::string_view> codec_at(ObjectWindow& window, const Placement& placement);

// Calls `found` with every sample (choose_samples), with its label in decimal where there is one. `corrupt`
// where there is no array or offsets do not ascend, `unsupported` where samples do not lie together.
Result<void> scan_arrays(ObjectWindow& window, std::span<const ScannedArray> arrays,
                         const std::function<void(const Format::Found&)>& found);

}  // namespace penstock
