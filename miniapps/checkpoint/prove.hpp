// Reads files of a checkpoint and holds every byte against its checksums and, where the bytes came from a
// seed, against that.
#pragma once

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Whether the manifest says what its bytes must be.
bool provable(const CheckpointManifest& manifest);

// As CheckpointStore::read_file, of a checkpoint of that store. interrupted between pieces.
Result<void> read_and_prove(const CheckpointStore& store, const CheckpointManifest& manifest,
                            const CheckpointFile& file, const CheckpointStore::Take& take);

}  // namespace penstock
