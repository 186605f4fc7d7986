// Trains networks with the primitives of oneDNN (versions 2 and 3).
#pragma once

#include <memory>

#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/network_trainer.hpp"

namespace penstock {

// Makes a trainer. make_network_trainer() calls this function through the NetworkTrainerModule.
Result<std::unique_ptr<NetworkTrainer>> make_onednn_trainer(const TrainerRequest& request);

}  // namespace penstock
