// Opens the data of a training and checks that the app can use them.
#pragma once

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {

// The corpus of --data, with its --overlay. invalid_argument if the app cannot use it.
Result<Corpus> open_train_corpus(const Options& options, const TrainRequest& request);

// The corpus of --validation, with the same check.
Result<Corpus> open_validation_corpus(const Options& options, const TrainRequest& request);

// Warns if the data differ from the workload's description of them.
void compare_with_workload(const TrainPlan& plan);

// Notes for the user what the run omits: validation, checkpoints, labels.
void note_what_is_left_out(const TrainPlan& plan);

}  // namespace penstock
