// --resume: where a training that was interrupted goes on, and the proof that its state is there.
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
  std::string tier;        // that it was read from
  double choose_s = 0;     // to find it, which reads it whole on rank 0
  double restore_s = 0;    // until every rank had read its part and proven it
  nlohmann::json restart;  // restart_json()

  PlanStart start() const;
};

// Where a run goes on, and what that took, in its record.
void describe_resumed(const Resumed& resumed, Trial& trial);

// The seed of the run that would be resumed, by manifests alone. Collective; errors as resume_run().
Result<std::uint64_t> seed_of_run(const StepSaving& saving, Communicator& ranks);

// The newest checkpoint of the run that is whole, on either tier; each rank reads its part of the files and
// proves every byte. Collective. not_found where there is none; busy where another one trains.
Result<Resumed> resume_run(const StepSaving& saving, Communicator& ranks);

// invalid_argument, naming --resume and --run, where the run has checkpoints already; busy where another one
// trains. Collective.
Result<void> check_unused(const StepSaving& saving, Communicator& ranks);

struct TrainPlan;

// What a checkpoint of the plan has to say.
TrainedWork trained_work(const TrainPlan& plan);

// invalid_argument, naming what differs, where a run that goes on is not this one, or its very next sample
// cannot be told.
Result<void> check_resumable(const TrainPlan& plan);

// Where a run with checkpoints goes on, or that there is none yet: errors as above. Collective.
Result<void> find_run(TrainPlan& plan);

// Its checkpoints from there on: errors as StepCheckpoints::open(). Collective; borrows the plan.
Result<std::unique_ptr<StepCheckpoints>> open_saves(const TrainPlan& plan);

// What was saved of a run that has made all its steps, and is not durable yet: it ends as a training does,
// after a signal within --grace. Collective.
Result<void> end_without_steps(const TrainPlan& plan, StepCheckpoints& saves);

}  // namespace penstock
