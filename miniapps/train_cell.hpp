// One cell of `train`: a mini-app on one tier, from cold buffers to a filled record.
#pragma once

#include "datagen/corpus.hpp"
#include "io_backends/base/tier.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/train_setup.hpp"
#include "results/trial.hpp"

namespace penstock {

// Samples that all the epochs of this rank have, with the remedy where that is less than a batch.
Result<Sampler> make_sampler(const TrainSetup& setup, const Corpus& corpus);

// Trains and fills `trial`: parameters, tier, cache, corpus, metrics (specs of record fields:
// docs/mini_apps.md), verdict. A failure of the measured thing is a verdict in there. The error that comes
// back is one of ours or of usage, such as a log that cannot be written; the trial then means nothing. `pool`
// fits setup.batch, setup.prefetch and the treatment.
//
// With an emulated accelerator the pipeline also runs without one, for as many steps as the training makes or
// about 20 seconds, but at least 8 batches: half of it before and half after the training where that leaves
// it the same cache, else all after it. The wall time of each part, scaled to the steps, is a sample of
// `input_alone_s`; input_overlap refers to their mean.
Result<void> measure_training(const TrainSetup& setup, const Corpus& corpus, const Tier& tier,
                              BatchPool& pool, Trial& trial);

}  // namespace penstock
