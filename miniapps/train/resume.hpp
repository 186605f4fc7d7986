// --resume: finds the checkpoint from which an interrupted training continues, and proves that its state is
// complete.
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpoint_manifest.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "miniapps/train/step_checkpoints.hpp"
#include "miniapps/train/step_saving.hpp"
#include "results/record/trial.hpp"

namespace penstock {

struct Resumed {
  CheckpointManifest manifest;
  std::string tier;        // the tier that it was read from
  double choose_s = 0;     // seconds to find it; rank 0 reads it whole for that
  double restore_s = 0;    // seconds until every rank had read and proven its part
  nlohmann::json restart;  // for the record, from restart_json()

  PlanStart start() const;
};

// Adds to the record where the run continues, and the times of the restart.
void describe_resumed(const Resumed& resumed, Trial& trial);

// The seed of the run to resume, from manifests alone. Collective. Errors as resume_run().
Result<std::uint64_t> seed_of_run(const StepSaving& saving, Communicator& ranks);

// Finds the newest complete checkpoint of the run, on either tier. Each rank reads its part of the files and
// checks every byte. Collective. not_found if there is none; busy if another process trains this run.
Result<Resumed> resume_run(const StepSaving& saving, Communicator& ranks);

// invalid_argument, naming --resume and --run, if the run already has checkpoints. busy if another process
// trains this run. Collective.
Result<void> check_unused(const StepSaving& saving, Communicator& ranks);

struct TrainPlan;

// Sets what each checkpoint contains of the plan's work: app, corpus, shuffle and step_samples.
void describe_work(const TrainPlan& plan, TrainerState& state);

// invalid_argument, naming the difference, if the checkpoint is of another kind of run, or if its next sample
// cannot be determined.
Result<void> check_resumable(const TrainPlan& plan);

// For a plan with checkpoints. With --resume it finds where the run continues; the errors are those of
// resume_run() and check_resumable(). Otherwise it checks that the run is new (check_unused()). Collective.
Result<void> find_run(TrainPlan& plan);

// Opens the checkpoints that continue there. Errors as StepCheckpoints::open(). Collective. Borrows the plan.
Result<std::unique_ptr<StepCheckpoints>> open_saves(const TrainPlan& plan);

// For a run that has made all its steps already: waits until its saved checkpoints are durable. It ends like
// a training; after a signal it waits for at most --grace. Collective.
Result<void> end_without_steps(const TrainPlan& plan, StepCheckpoints& saves);

}  // namespace penstock
