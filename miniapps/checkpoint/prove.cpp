#include "miniapps/checkpoint/prove.hpp"

#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/payload.hpp"

namespace penstock {

bool provable(const CheckpointManifest& manifest) {
  return !manifest.payload.empty();
}

Result<void> read_and_prove(const CheckpointStore& store, const CheckpointManifest& manifest,
                            const CheckpointFile& file, const CheckpointStore::TakeChunk& take) {
  const auto prove = [&](uint64_t offset, std::span<const std::byte> bytes) -> Result<void> {
    PENSTOCK_TRY(check_interrupt());
    if (provable(manifest)) {
      Result<void> proven =
          prove_state(bytes, offset, file.name, file.rank, manifest.payload_seed, manifest.id.step);
      if (!proven.ok())
        return make_error(proven.error().code, "'{}/{}' on '{}' has correct checksums, but {}",
                          CheckpointStore::folder(manifest.run, manifest.id), file.name, store.tier().name,
                          proven.error().what);
    }
    return take ? take(offset, bytes) : success();
  };
  return store.read_file(manifest.run, manifest.id, file, prove);
}

}  // namespace penstock
