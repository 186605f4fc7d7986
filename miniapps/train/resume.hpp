// --resume: finds the checkpoint from which an interrupted training continues, and proves that its state is
// complete.
#pragma once

#include <cstdint>
#include <string>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/train/step_saving.hpp"

namespace penstock {

// Returns the seed of the run to resume. Reads only the manifests of checkpoints. Collective. Its errors are
// those of resume_run().
Result<uint64_t> seed_of_run(const StepSaving& saving, Communicator& ranks);

// Finds the newest complete checkpoint of the run, on either tier. Each rank reads its part of the files and
// checks every byte. Collective. not_found if there is none; busy if another process trains this run.
Result<Resumed> resume_run(const StepSaving& saving, Communicator& ranks);

// Checks that a new run has an unused name. invalid_argument, naming --resume and --run, if the run already
// has checkpoints. busy if another process trains this run. Collective.
Result<void> check_unused(const StepSaving& saving, Communicator& ranks);

struct TrainPlan;

// Finds out where the run of a plan with --checkpoint-every starts. With --resume it finds where the run
// continues, and returns a note for the user. The errors are those of resume_run(); invalid_argument, naming
// the difference, if the checkpoint is of another kind of run, or if its next sample cannot be determined.
// Without --resume it checks that the run is new (check_unused()), and returns "". Collective.
Result<std::string> find_run(TrainPlan& plan);

// Opens plan.saving->checkpoints, which continue where find_run() found the run. The errors are those of
// StepCheckpoints::open(). Collective. The checkpoints borrow the plan, which must not move from now on.
Result<void> open_checkpoints(TrainPlan& plan);

}  // namespace penstock
