// Trains a network on this machine's processors. The computing code needs oneDNN, so it is in a shared
// library of its own, "the module". The program opens this library only when it trains a network.
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
  size_t samples = 0;  // samples of each batch
  Axes axes = Axes::nhwc;
  unsigned threads = 0;  // 0: one for each processor
  // The seed of the initial weights. The weights of a layer are random numbers between -sqrt(3 / inputs) and
  // +sqrt(3 / inputs), all equally likely. Those of layer i come from substream i of the stream
  // "train.network", in the order output, input, line, column. Biases are 0.
  uint64_t seed = 0;
  float rate = 0.001F;  // learning rate; with these initial weights AlexNet diverges at 0.01
  // Called before each part of a layer, so that Ctrl-C can end a long step: if this function returns an
  // error, step() ends with that error. May be null.
  Result<void> (*may_go_on)() = nullptr;
};

// A network in training. It owns the weights and all memory that a step needs. Only one thread at a time may
// use it.
class NetworkTrainer {
 public:
  virtual ~NetworkTrainer() = default;

  // Makes one step of gradient descent: computes forward and backward, and then subtracts rate * gradient
  // from the weights. `pictures` has the f32 values of a whole batch. `labels` has one class below
  // Network::classes() for each sample. Returns the loss before the update: the cross entropy after softmax,
  // as the mean over the samples. After an error the weights are undefined.
  virtual Result<double> step(std::span<const float> pictures, std::span<const uint32_t> labels) = 0;
};

// Success if the module can be opened and is of the same version as the program. Otherwise `unsupported`,
// with advice on how to build Penstock with oneDNN.
Result<void> network_trainer_available();
// Makes a trainer and touches all its memory, which takes some tenths of a second for AlexNet. `exhausted` if
// it needs more memory than there is.
Result<std::unique_ptr<NetworkTrainer>> make_network_trainer(const TrainerRequest& request);

// What libpenstock_onednn.so offers to the program that opens it.
struct NetworkTrainerModule {
  const char* version = nullptr;  // Penstock's version: the program and the module must be of the same build
  Result<std::unique_ptr<NetworkTrainer>> (*make)(const TrainerRequest& request) = nullptr;
};
using NetworkTrainerModuleFunction = const NetworkTrainerModule* (*)();
inline constexpr const char* kNetworkTrainerModuleSymbol = "penstock_onednn_module";

}  // namespace penstock
