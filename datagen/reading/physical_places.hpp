// Finds where samples are on their device, so that they can be read in the order of these places.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "datagen/sample/sample_list.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

struct DeviceOrder {
  // A key for each sample; samples with smaller keys come first on the device.
  std::vector<uint64_t> sample_keys;
  // What the keys are: "extent" or "inode". "extent": byte offsets on the device, which FIEMAP returns.
  // "inode": the files' inode numbers, used if FIEMAP is not available. Most local file systems place files
  // in the order of inodes.
  std::string_view key_kind;
};

// Finds the place of every sample on its device. Fails with `unsupported` if the back end's objects are not
// files of this machine, and with the errors of open and stat. Ctrl-C interrupts it.
Result<DeviceOrder> device_order(const SampleList& samples, const Backend& backend);

}  // namespace penstock
