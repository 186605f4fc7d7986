// One cell of `train`: a mini-app on one tier, from cold buffers to a filled record.
#pragma once

#include "datagen/corpus/corpus.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/train/step_checkpoints.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Trains and fills `trial`: parameters, tier, cache, corpus, metrics (specs of record fields:
// docs/mini_apps.md), verdict. A failure of the measured thing is a verdict in there. The error that comes
// back is one of ours or of usage, such as a log that cannot be written; the trial then means nothing. `pool`
// fits plan.batch_shape() and plan.pool_prefetch(). `saves` is what --checkpoint-every asks for, else null.
//
// Collective over the ranks of the plan: they make each step together, each with its part of the corpus, and
// the trial is the same on all, but for the times of single steps and the facts that the accelerator has,
// which are those of the rank itself.
//
// With an accelerator that computes the pipeline also runs without one (except in a search), for as many
// steps as the training makes or about 20 seconds, but at least 8 batches: half of it before and half after
// the training where that leaves it the same cache, else all after it. The wall time of each part, scaled to
// the steps, is a sample of `input_alone_s`; input_overlap refers to their mean.
//
// False: stuck. A call into the back end does not come back, on one of the ranks: threads may still be using
// what they were given here. All of it must outlive the process, which can only _exit().
Result<bool> measure_training(const TrainPlan& plan, const Tier& tier, BatchPool& pool,
                              StepCheckpoints* saves, Trial& trial);

}  // namespace penstock
