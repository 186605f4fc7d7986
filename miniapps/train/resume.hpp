// Implements --resume: finds the checkpoint from which an interrupted training continues, and proves that its
// state is complete.
#pragma once

#include <cstdint>
#include <string>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/train/step_saving.hpp"

namespace penstock {

// Returns the seed of the run to resume. Reads only the manifests of checkpoints. This function takes no
// locks, so the error is never `busy`. The other errors are those of resume_run(). Collective.
Result<uint64_t> seed_of_run(const StepSaving& saving, Communicator& ranks);

// Finds the newest complete checkpoint of the run, on the fast or the slow tier. The ranks divide its files
// among themselves, and check every byte. not_found if there is no such checkpoint; busy if another process
// trains this run. Collective.
Result<ResumePoint> resume_run(const StepSaving& saving, Communicator& ranks);

// Checks that the name of a new run is not in use. If the run already has checkpoints, the error is
// invalid_argument and advises --resume or another --run. busy if another process trains this run.
// Collective.
Result<void> check_unused(const StepSaving& saving, Communicator& ranks);

struct TrainPlan;

// Finds out where the run of a plan with --checkpoint-every starts. Collective.
// With --resume it finds where the run continues, and returns a note for the user. The error is
// invalid_argument, with the reason, if the checkpoint is of another kind of run, or if the next sample
// cannot be determined from it. Other errors are those of resume_run().
// Without --resume it checks by check_unused() that the run is new, and returns "".
Result<std::string> find_run(TrainPlan& plan);

// Opens plan.saving->checkpoints. They continue where find_run() found the run. The checkpoints borrow the
// plan, which must not move from now on. The errors are those of StepCheckpoints::open(). Collective.
Result<void> open_checkpoints(TrainPlan& plan);

}  // namespace penstock
