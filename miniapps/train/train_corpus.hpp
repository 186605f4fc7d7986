// Opens the data of a training and checks that the app can use them.
#pragma once

#include <string>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {

// The corpus of --data, with its --overlay. invalid_argument if the app cannot use it.
// Adds to the request's notes.
Result<Corpus> open_train_corpus(const Options& options, TrainRequest& request);

// The corpus of --validation, with the same check.
Result<Corpus> open_validation_corpus(const Options& options, const TrainRequest& request);

// A warning if the data differ from the workload's description of them, else "".
std::string compare_with_workload(const TrainPlan& plan);

// Notes for the user: what the run omits of validation, checkpoints and labels.
std::vector<std::string> note_omissions(const TrainPlan& plan);

}  // namespace penstock
