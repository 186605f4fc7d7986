#include "benchmarks/read/block_manifest.hpp"

#include <algorithm>
#include <string_view>
#include <vector>

#include "datagen/corpus/corpus_samples.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

constexpr std::string_view kBlocksRecipe = "blocks";

}  // namespace

Result<Manifest> block_manifest(std::span<const Entry> objects, uint64_t block) {
  ManifestFacts facts;
  facts.recipe = kBlocksRecipe;
  facts.format = "files";
  facts.codec = "raw";
  ManifestBuilder builder(facts);
  for (const Entry& entry : objects) {
    PENSTOCK_TRY(check_interrupt());
    const uint32_t object = builder.add_object(entry.name, entry.bytes);
    const uint64_t sample_bytes = block == 0 ? entry.bytes : block;
    for (uint64_t at = 0; sample_bytes != 0 && sample_bytes <= entry.bytes - at; at += sample_bytes)
      builder.add_sample({.offset = at, .length = sample_bytes, .object = object});
  }
  PENSTOCK_ASSIGN(std::vector<std::byte> bytes, builder.finish());
  return Manifest::from_bytes(std::move(bytes));
}

Result<Manifest> block_manifest(const Manifest& source, uint64_t block) {
  std::vector<Entry> objects;
  std::string scratch;
  uint64_t largest = 0;
  for (uint64_t i = 0; i < source.objects(); ++i) {
    objects.push_back({std::string(source.object_name(i, scratch)), source.object_bytes(i)});
    largest = std::max(largest, objects.back().bytes);
  }
  if (largest < block)
    return make_error(Errc::not_found, "no object has {}: the largest has {}; choose a smaller --block",
                      format_size(block), format_size(largest));
  return block_manifest(objects, block);
}

BlockRest rest_of_blocks(const Manifest& blocks) {
  BlockRest rest;
  if (blocks.facts().recipe != kBlocksRecipe) return rest;
  const uint64_t block = blocks.samples() == 0 ? 0 : blocks.sample(0).length;
  for (uint64_t i = 0; i < blocks.objects(); ++i) rest.bytes += blocks.object_bytes(i);
  rest.bytes -= std::min(rest.bytes, blocks.payload_bytes());
  if (rest.bytes == 0) return rest;  // each object may be one sample, of any size
  for (uint64_t i = 0; i < blocks.objects(); ++i) rest.objects += blocks.object_bytes(i) < block ? 1U : 0U;
  return rest;
}

Result<BlockObjects> block_objects(std::span<const Entry> objects, uint64_t block) {
  PENSTOCK_ASSIGN(Manifest manifest, block_manifest(objects, block));
  PENSTOCK_ASSIGN(SampleList samples, corpus_samples(manifest));
  return BlockObjects{std::move(manifest), std::move(samples)};
}

}  // namespace penstock
