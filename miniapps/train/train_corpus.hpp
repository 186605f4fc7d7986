// The data of a training: opened, and held against what its app takes.
#pragma once

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {

// That of --data, with its --overlay. invalid_argument where it is something else than the app takes.
Result<Corpus> open_train_corpus(const Options& options, const TrainRequest& request);

// That of --validation, likewise.
Result<Corpus> open_validation_corpus(const Options& options, const TrainRequest& request);

// Warns where the data are not what the workload says of them.
void compare_with_workload(const TrainPlan& plan);

// Notes what the run leaves out: validation, checkpoints, labels.
void note_what_is_left_out(const TrainPlan& plan);

}  // namespace penstock
