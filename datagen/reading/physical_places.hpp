// Where samples lie on their device, to read them in that order.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "datagen/sample/sample_list.hpp"
#include "io_backends/backend/backend.hpp"

namespace penstock {

struct PhysicalPlaces {
  std::vector<std::uint64_t> of_sample;  // smaller lies before larger
  // "extent": byte of the device, as the file system says by FIEMAP; "inode": the file's number, by which
  // most local file systems place their files, where it does not say.
  std::string_view by;
};

// Looks at every object that samples are in. `unsupported` where the back end's objects are no files of this
// machine; else as opening and looking at them fails. Interruptible.
Result<PhysicalPlaces> physical_places(const SampleList& samples, const Backend& backend);

}  // namespace penstock
