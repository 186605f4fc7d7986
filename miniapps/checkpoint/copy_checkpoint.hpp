// Copies a checkpoint from one store to another.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <functional>

#include "io_backends/backend/buffer.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// The buffers of a copy, for chunks that are read ahead or are being written. A caller that copies several
// checkpoints passes the same buffers each time: the first use of new memory takes longer than reading a
// chunk into it.
using CopyMemory = std::array<Buffer, 4>;

struct CopyRequest {
  bool read_back = false;      // the copy is read and checked before it is committed
  bool read_existing = false;  // an existing copy is accepted only after it is read and checked
  bool interruptible = true;   // false: signals are ignored as `heed_signals` says; `on_written` can end it
  // If not null, a signal stops the reading thread only after this flag has become true (IgnoreInterrupt).
  // Set it if `interruptible` is false: without it, a signal may stop the reading thread at once.
  const std::atomic<bool>* heed_signals = nullptr;
  uint64_t headroom = 0;
  CopyMemory* memory = nullptr;  // null: the copy uses buffers of its own
  // Called on the caller's thread with the size of each piece that was written or, with `read_existing`, read
  // from the existing copy. An error that it returns ends the copy.
  std::function<Result<void>(uint64_t bytes)> on_written = {};
};

// Copies a committed checkpoint from one store to another and commits it there, with the same run, id and
// bytes. Checks every chunk that it reads. The caller holds the run's drain lock of `to`.
// If `to` already has that checkpoint, nothing is copied. The result is success if the manifest of that copy
// lists the same files and, with `read_existing`, their bytes are right; else already_exists. The folders of
// the copy are synced before success is returned: the process that committed it may have been killed before
// it synced them.
Result<CheckpointManifest> copy_checkpoint(const CheckpointStore& from, CheckpointStore& to,
                                           const CheckpointManifest& manifest,
                                           const CopyRequest& request = {});

}  // namespace penstock
