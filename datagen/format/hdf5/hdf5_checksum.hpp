// The checksum of HDF5's metadata: Bob Jenkins's lookup3 (hashlittle, May 2006) with the initial value 0.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

namespace penstock {

uint32_t hdf5_checksum(std::span<const std::byte> bytes);

}  // namespace penstock
