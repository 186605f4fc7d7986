// Checks the target of `generate`: what it contains before, whether there is enough space, and which files
// are left over after a kill.
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

// The state with which the data set at the target was started, whether it is finished or not. Nothing if
// there is none, or if Penstock did not generate it.
Result<std::optional<GenerationState>> read_started_generation(Tier& tier);

// Fails with `busy` if another process is generating a data set in this target, and names that process.
// Callers then neither remove the target's objects nor resume. Changes nothing. On a back end without native
// files it always succeeds: there, taking the lock fails instead.
Result<void> check_no_writer(Tier& tier);

// Fails with `permission_denied` if objects cannot be created in the target, or if a missing target cannot be
// created. Always succeeds on a back end without native files.
Result<void> check_may_write(Tier& tier);

// Inspects the target without changing it. The target must be empty or, with `resume`, contain the data set
// that `requested` describes. Otherwise the error is `already_exists`, with the remedy. Returns true if that
// data set is complete. Even then its state file and journal may still exist.
Result<bool> check_target(Tier& tier, const GenerationState& requested, bool resume);

// Fails with `no_space` if the data set does not fit; the message gives the needed and the free space and the
// remedy. Counts bytes, whole blocks and inodes, including those of folders. If the data set was started,
// only its missing part counts. Succeeds if the back end cannot report free space.
Result<void> check_free_space(Tier& tier, const Generation& generation, bool started);

// Like check_free_space(), for a finished data set whose `wrong` objects are made again. Counts only the
// bytes that these objects lack.
Result<void> check_space_for_repair(Tier& tier, const Manifest& manifest,
                                    std::span<const ObjectVerdict> wrong);

// Removes the journal, the state and the lock's file if they are left in a complete data set. They are left
// if a process was killed after it wrote the manifest. Does nothing if another process holds the lock or the
// folder is read-only.
void remove_leftovers(Backend& backend);

}  // namespace penstock
