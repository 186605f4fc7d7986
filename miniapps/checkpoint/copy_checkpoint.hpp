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

// The chunks of a copy that have been read ahead or are being written. Who copies one checkpoint after
// another keeps it: fresh memory costs the first use of a page more than reading into it.
using CopyMemory = std::array<Buffer, 4>;

struct CopyRequest {
  bool read_back = false;     // the copy is read again and checked before it is committed
  bool read_there = false;    // one that is there already is read and checked before it counts
  bool interruptible = true;  // false: a signal does not end it (who has a grace ends it by `gone_on`)
  const std::atomic<bool>* over = nullptr;  // where not: until when the thread that reads works on (WorkOn)
  std::uint64_t headroom = 0;
  CopyMemory* memory = nullptr;                                   // null: of its own
  std::function<Result<void>(std::uint64_t bytes)> gone_on = {};  // told bytes as they are written; an
                                                                  // error of it ends the copying
};

// Copies a committed checkpoint from one store to another and commits it there: reading checks every chunk,
// the copy has the same run, id and bytes. Where that checkpoint is there already: success if its manifest
// names the same bytes (and it is synced, whoever brought it there), and where `read_there`, if these are
// what it has; else already_exists. The caller holds the run's drain lock of `to`.
Result<CheckpointManifest> copy_checkpoint(const CheckpointStore& from, CheckpointStore& to,
                                           const CheckpointManifest& manifest,
                                           const CopyRequest& request = {});

}  // namespace penstock
