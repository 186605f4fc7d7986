// Measures one cell of `train`: one mini-app on one tier. It makes the pipeline, trains, and fills the
// record.
#pragma once

#include "datagen/corpus/corpus.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Trains and fills `trial`: parameters, tier, cache, corpus, metrics (docs/reference/mini-apps.md) and verdict. If the
// measured work fails, that becomes the verdict. A returned error is a bug or wrong usage, such as a log that
// cannot be written; the trial is then invalid. `pool` must fit plan.batch_shape() and plan.pool_prefetch().
//
// Returns false if the cell is stuck: on one of the ranks a call into the back end does not return, so its
// thread may still use the arguments. Then all arguments must exist until the process ends, and the process
// must end by _exit().
//
// All ranks of the plan must call it (collective): they make each step together, each with its part of the
// corpus. The trial is the same on all ranks, with two exceptions: the times of single steps and the
// accelerator's metrics are those of the rank itself.
//
// If the accelerator computes, the pipeline also runs alone, without the accelerator (but not for
// --find-accelerators). This run has as many steps as the training. It ends early after about 20 seconds, but
// has at least 8 batches. With a cold cache and several epochs it does not end early. Half of it comes before
// the training and half after it, if two things are true: the training has at least 8 steps, and it still
// starts in the requested cache state after the first half. Otherwise all of it comes after the training. The
// wall time of each half, scaled to the number of steps of the training, is a sample of `input_alone_s`;
// input_overlap uses the mean of these samples.
Result<bool> measure_training(const TrainPlan& plan, const Tier& tier, BatchPool& pool, Trial& trial);

}  // namespace penstock
