// Checks the target of `generate`: what it contains before the run, and whether there is enough space. Also
// removes files that remain after a kill.
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

// The state with which the data set at the target was started, whether it is finished or not. Returns nothing
// if there is no data set, or if its manifest cannot be read. The recipe is "scan" if Penstock did not
// generate the data set.
Result<std::optional<GenerationState>> read_started_generation(Tier& tier);

// Fails with `busy` if another process is generating a data set in this target, and names the process. A
// caller that gets this error must neither remove the target's objects nor resume. Changes nothing. On a back
// end without native files it always succeeds: there, only taking the lock detects the other process.
Result<void> check_no_writer(Tier& tier);

// Fails with `permission_denied` if the target does not allow new objects, or does not exist and cannot be
// created. On a back end without native files it always succeeds.
Result<void> check_may_write(Tier& tier);

// Checks, without changing it, that the target is empty or, with `resume`, contains the data set that
// `requested` describes. Otherwise the error is `already_exists`, and says what to do. Returns true if the
// data set is complete. Its state file and journal may still exist then.
Result<bool> check_target(Tier& tier, const GenerationState& requested, bool resume);

// Fails with `no_space` if the data set does not fit. The message says how much space is needed and free, and
// what to do. Counts bytes, whole blocks and inodes, including those of folders. If the data set was started,
// counts only the missing part. Succeeds if the back end cannot say how much space is free.
Result<void> check_free_space(Tier& tier, const Generation& generation, bool started);

// Like check_free_space(), for a finished data set. `wrong` are the objects that will be made again. Counts
// only the bytes that these objects lack.
Result<void> check_space_for_repair(Tier& tier, const Manifest& manifest,
                                    std::span<const ObjectVerdict> wrong);

// Removes the journal, the state file and the lock's file from a complete data set. They remain there if a
// process was killed after it wrote the manifest. Does nothing if another process holds the lock or the
// folder is read-only.
void remove_leftovers(Backend& backend);

}  // namespace penstock
