// Trains a network on this machine's processors. What computes is a module with oneDNN, which the program
// opens where it is asked for.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>

#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/network.hpp"
#include "miniapps/pipeline/picture_tensor.hpp"

namespace penstock {

struct TrainerRequest {
  Network network;
  std::size_t samples = 0;  // of each batch
  Axes axes = Axes::nhwc;
  unsigned threads = 0;  // 0: as many as there are processors
  // Of the weights that it begins with: those of layer i are drawn evenly from +-sqrt(3 / inputs), by
  // substream i of the stream "train.network", in the order output, input, line, column. Biases are 0.
  std::uint64_t seed = 0;
  float rate = 0.001F;  // of learning: AlexNet diverges at 0.01 from such weights
  // Called before each part of a layer; an error ends the step. Null: no call.
  Result<void> (*may_go_on)() = nullptr;
};

// Weights, and all memory that a step needs. One thread.
class NetworkTrainer {
 public:
  virtual ~NetworkTrainer() = default;

  // Forward, backward, and weights -= rate * gradient: one step of gradient descent. `pictures` are the f32
  // of a whole batch, `labels` one class below Network::classes() a sample. The loss before the update:
  // softmax and cross entropy, the mean over the samples. After an error the weights are undefined.
  virtual Result<double> step(std::span<const float> pictures, std::span<const std::uint32_t> labels) = 0;
};

// `unsupported`, with the remedy, where this build has no oneDNN.
Result<void> network_trainer_available();
// Takes what it needs and touches it, which takes some tenths of a second for AlexNet. `exhausted` where that
// is more memory than there is.
Result<std::unique_ptr<NetworkTrainer>> make_network_trainer(const TrainerRequest& request);

// What libpenstock_onednn.so gives.
struct NetworkTrainerModule {
  const char* version = nullptr;  // Penstock's: both parts are built together
  Result<std::unique_ptr<NetworkTrainer>> (*make)(const TrainerRequest& request) = nullptr;
};
using NetworkTrainerModuleFunction = const NetworkTrainerModule* (*)();
inline constexpr const char* kNetworkTrainerModuleSymbol = "penstock_onednn_module";

}  // namespace penstock
