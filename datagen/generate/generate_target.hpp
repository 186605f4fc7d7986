// The place that a data set is made in: what lies there before, and what is done to it around the making.
#pragma once

#include <optional>
#include <span>

#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generation.hpp"
#include "datagen/manifest/manifest.hpp"
#include "datagen/objects/object_check.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// What the data set at the target was started with, finished or not; nothing where there is none, or none of
// ours.
Result<std::optional<GenerationState>> read_started_generation(Tier& tier);

// busy, saying who, where another process makes a data set there now: what is there is neither to be removed
// nor to be gone on with. Changes nothing. A back end without files of the system's passes; there the lock
// itself tells.
Result<void> check_no_writer(Tier& tier);

// permission_denied where objects could not be made in the target, or it could not be made where it is not
// there yet. A back end without files of the system's passes.
Result<void> check_may_write(Tier& tier);

// Looks at the target without changing it. `already_exists` with the remedy when it holds anything but an
// unfinished data set of `wanted` (with `resume`), or that without `resume`. True: it is complete already,
// though what it remembered while it was not may still lie there.
Result<bool> check_target(Tier& tier, const GenerationState& wanted, bool resume);

// no_space, naming what is wanted, what is there and the remedy, where the data set does not fit into what is
// free there, in bytes, in whole blocks or in inodes, those of folders too; of one that was started, what is
// missing. A back end that cannot say what is free passes.
Result<void> check_room(Tier& tier, const Generation& generation, bool started);

// Likewise of a finished data set whose `wrong` objects are to be made again: no more than they lack counts.
Result<void> check_room_to_mend(Tier& tier, const Manifest& manifest, std::span<const ObjectVerdict> wrong);

// Removes what a process left in a complete data set that was killed behind the manifest: journal, state, and
// the lock's file; where another one holds the lock, or the folder cannot be written, it stays.
void sweep_finished(Backend& backend);

}  // namespace penstock
