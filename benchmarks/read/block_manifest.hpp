// Makes manifests that divide objects into blocks of one size, and ignore which samples the objects really
// contain.
#pragma once

#include <cstdint>
#include <span>

#include "datagen/manifest/manifest.hpp"
#include "datagen/sample/sample_list.hpp"
#include "io_backends/backend/namespace.hpp"

namespace penstock {

// Makes a manifest in which every block of `block` bytes of an object is one sample. Of the entries in
// `objects`, only name and size count. Bytes after an object's last whole block belong to no sample. If
// `block` is 0, each object is one sample. The manifest has no checksums, and its recipe is named "blocks".
Result<Manifest> block_manifest(std::span<const Entry> objects, uint64_t block);

// Divides the objects of the manifest `source` into blocks, as the function above does. Fails with not_found
// if no object has a whole block.
Result<Manifest> block_manifest(const Manifest& source, uint64_t block);

// Objects in blocks, as the read engine needs them: a manifest and its list of samples.
struct BlockObjects {
  Manifest manifest;
  SampleList samples;
};
Result<BlockObjects> block_objects(std::span<const Entry> objects, uint64_t block);

// What the blocks of a manifest leave out. Nothing if block_manifest() did not make the manifest.
struct BlockRest {
  uint64_t objects = 0;  // objects without a whole block
  uint64_t bytes = 0;    // bytes of all objects that are in no block
};
BlockRest rest_of_blocks(const Manifest& blocks);

}  // namespace penstock
