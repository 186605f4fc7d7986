// The accelerator `cpu`: really trains a network on the batches, on this machine's processors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/network.hpp"

namespace penstock {

// Makes the accelerator `cpu`, which trains AlexNet. `words` are the options after "cpu:". `unsupported` in a
// build without oneDNN. invalid_argument if a process asks for more than one such accelerator: each would
// need all processors of the machine.
Result<std::unique_ptr<Accelerator>> make_cpu_accelerator(std::span<const OptionWord> words,
                                                          const AcceleratorGroup& group);

// Makes an accelerator that trains the given network. Its prepare() makes the network and allocates the
// memory. The accelerator takes f32 pictures of the network's input size, with the axes in the order nhwc or
// nchw.
// A step has no nominal time, so Step::deadline is Step::end. A sample without a label gets class 0. A label
// that is not a class of the network is an error, invalid_argument.
// Metrics: `loss_first` and `loss_last`, the mean losses of the first and of the last batch.
std::unique_ptr<Accelerator> make_training_accelerator(const Network& network, unsigned threads,
                                                       uint64_t seed);

}  // namespace penstock
