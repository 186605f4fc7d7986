// How many checkpoints of a run stay.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Removes all but the `keep` newest of the run's checkpoints that have a good manifest, the oldest first;
// returns how many went. Where one alone is kept, it is read whole and checked before another goes. Those
// whose manifest is wrong are neither counted nor touched.
// `saved`: one that was just committed; neither it nor a newer one goes, however many there are. Any thread;
// two of them take turns.
Result<std::uint64_t> prune_checkpoints(CheckpointStore& store, std::string_view run, std::uint64_t keep,
                                        const std::optional<CheckpointId>& saved = {});

}  // namespace penstock
