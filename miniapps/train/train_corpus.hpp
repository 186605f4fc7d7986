// Opens the corpora of a training (--data and --validation) and checks that the app can use them.
#pragma once

#include <string>
#include <vector>

#include "datagen/corpus/corpus.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/train/train_plan.hpp"

namespace penstock {

// Opens the corpus of --data, and applies --overlay to it. invalid_argument if the app cannot use it. May add
// notes to the request.
Result<Corpus> open_train_corpus(const Options& options, TrainRequest& request);

// Opens the corpus of --validation, with the same check as open_train_corpus().
Result<Corpus> open_validation_corpus(const Options& options, const TrainRequest& request);

// Returns warnings if the data differ from what the workload file says about them.
std::vector<std::string> compare_with_workload(const TrainPlan& plan);

// Notes for the user: which validation, checkpoints or labels the run omits.
std::vector<std::string> note_omissions(const TrainPlan& plan);

}  // namespace penstock
