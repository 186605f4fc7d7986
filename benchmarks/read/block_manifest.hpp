// Lists objects as blocks of one size, without regard to the samples in them.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <utility>

#include "datagen/manifest/manifest.hpp"

namespace penstock {

// Makes a manifest of `objects` (name and size in bytes). Every whole block of `block` bytes is a sample, and
// the bytes after an object's last whole block belong to none. If `block` is 0, each object is one sample.
// The manifest has no recipe and no checksums.
Result<Manifest> block_manifest(std::span<const std::pair<std::string, uint64_t>> objects, uint64_t block);

// Makes a manifest of the blocks of the objects of `source`. Fails with not_found if no object has a whole
// block.
Result<Manifest> block_manifest(const Manifest& source, uint64_t block);

}  // namespace penstock
