// The checksum of HDF5's metadata, and the headers of objects, which end with one.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "datagen/format/byte_order.hpp"

namespace penstock {

// Bob Jenkins's lookup3 (hashlittle, May 2006) with the initial value 0.
uint32_t hdf5_checksum(std::span<const std::byte> bytes);

// Adds a message of a type to the messages of an object.
void put_hdf5_message(HeaderBytes& messages, uint8_t type, const HeaderBytes& data);
// The header of version 2 of an object with these messages.
std::vector<std::byte> hdf5_object_header(const HeaderBytes& messages);

}  // namespace penstock
