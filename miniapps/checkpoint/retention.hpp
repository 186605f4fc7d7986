// Removes old checkpoints of a run.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Removes all but the `keep` newest of the run's checkpoints with a valid manifest, the oldest first; returns
// how many it removed. If `keep` is 1, the newest is first read completely and checked. Checkpoints with a
// wrong manifest are neither counted nor removed. `saved`: a checkpoint that was just committed; it and all
// newer ones stay, even if that is more than `keep`. Any thread may call it; calls of several threads run one
// after the other.
Result<uint64_t> prune_checkpoints(CheckpointStore& store, std::string_view run, uint64_t keep,
                                   const std::optional<CheckpointId>& saved = {});

}  // namespace penstock
