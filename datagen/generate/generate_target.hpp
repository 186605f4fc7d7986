// Checks of the target of `generate`: what it contains before, whether there is enough space, and what is
// removed afterwards.
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

// The state with which the data set at the target was started, finished or not. Nothing if there is none, or
// if Penstock did not generate it.
Result<std::optional<GenerationState>> read_started_generation(Tier& tier);

// `busy`, naming the other process, if it is generating a data set in this target. Callers then neither
// remove the target's objects nor resume. Changes nothing. Succeeds on a back end without native files:
// taking the lock fails there instead.
Result<void> check_no_writer(Tier& tier);

// `permission_denied` if objects cannot be created in the target, or if a missing target cannot be created.
// Succeeds on a back end without native files.
Result<void> check_may_write(Tier& tier);

// Inspects the target without changing it. `already_exists`, with the remedy, unless the target is empty or,
// with `resume`, contains a data set of `requested`. Returns true if that data set is complete. State and
// journal of the unfinished data set may then still exist.
Result<bool> check_target(Tier& tier, const GenerationState& requested, bool resume);

// `no_space`, with the needed and the free space and the remedy, if the data set does not fit. Counts bytes,
// whole blocks and inodes, including those of folders. If it was started, only the missing part counts.
// Succeeds if the back end cannot report free space.
Result<void> check_free_space(Tier& tier, const Generation& generation, bool started);

// Like check_free_space(), for a finished data set whose `wrong` objects are made again. Counts only the
// bytes that these objects lack.
Result<void> check_space_for_repair(Tier& tier, const Manifest& manifest,
                                    std::span<const ObjectVerdict> wrong);

// Removes leftovers from a complete data set, if a process was killed after it wrote the manifest: journal,
// state and the lock's file. Does nothing if another process holds the lock or the folder is read-only.
void remove_leftovers(Backend& backend);

}  // namespace penstock
