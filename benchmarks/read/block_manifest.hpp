// Objects as blocks of one size, whatever samples are in them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "datagen/manifest/manifest.hpp"

namespace penstock {

// Each object's name and bytes. Every whole block of `block` bytes is a sample, what is left over at an
// object's end is none; with `block` 0 every object is one. Of no recipe, without checksums.
Result<Manifest> block_manifest(std::span<const std::pair<std::string, std::uint64_t>> objects,
                                std::uint64_t block);

// The objects of another manifest. not_found where none has a whole block.
Result<Manifest> block_manifest(const Manifest& of, std::uint64_t block);

}  // namespace penstock
