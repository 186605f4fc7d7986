// Measures one cell of `train`: one mini-app on one tier. It makes the pipeline, trains, and fills the
// record.
#pragma once

#include "datagen/corpus/corpus.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Trains and fills `trial`: parameters, tier, cache, corpus, metrics (docs/mini_apps.md) and verdict. A
// failure of the measured work becomes the verdict. A returned error is a bug or wrong usage, such as a log
// that cannot be written; the trial is then invalid. `pool` must fit plan.batch_shape() and
// plan.pool_prefetch().
//
// Returns false if the cell is stuck: on one of the ranks a call into the back end does not return, so
// threads may still use the arguments. Then all arguments must exist until the process ends, and the process
// must end by _exit().
//
// All ranks of the plan must call it (collective): they make each step together, each with its part of the
// corpus. The trial is the same on all ranks, except for the times of single steps and the accelerator's
// metrics, which are of the rank itself.
//
// If the accelerator computes, the pipeline also runs without it, but not for --find-accelerators. It runs
// for as many steps as the training or about 20 seconds, but at least 8 batches. Half of that comes before
// the training and half after it, if the first half leaves the training the same cache state. Otherwise all
// of it comes after. The wall time of each half, scaled to the steps of the training, is a sample of
// `input_alone_s`; input_overlap uses the mean of these samples.
Result<bool> measure_training(const TrainPlan& plan, const Tier& tier, BatchPool& pool, Trial& trial);

}  // namespace penstock
