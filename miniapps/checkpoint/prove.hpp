// Reads files of a checkpoint and checks every byte against its checksums. If the bytes were made from a
// seed, checks them against the seed too.
#pragma once

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Whether the bytes were made from a seed, so that they can be checked against it.
bool provable(const CheckpointManifest& manifest);

// Reads a file of a checkpoint and compares each chunk with its checksum (CheckpointStore::read_file()). If
// provable(), also compares its bytes with those that the seed gives. Ctrl-C ends it between two chunks.
Result<void> read_and_prove(const CheckpointStore& store, const CheckpointManifest& manifest,
                            const CheckpointFile& file, const CheckpointStore::TakeChunk& take);

}  // namespace penstock
