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
// build without oneDNN. invalid_argument if a process asks for more than one: it has only one set of
// processors.
Result<std::unique_ptr<Accelerator>> make_cpu_accelerator(std::span<const OptionWord> words,
                                                          const AcceleratorGroup& group);

// Makes an accelerator that trains any network. Its prepare() makes the network and allocates the memory. It
// takes f32 pictures of the network's size, in both orders of axes. Step::deadline is Step::end, since a step
// has no nominal time. A sample without a label gets class 0. A label that is not a class of the network is
// invalid_argument. Metrics: `loss_first` and `loss_last`, the mean losses of the first and the last batch.
std::unique_ptr<Accelerator> make_training_accelerator(const Network& network, unsigned threads,
                                                       uint64_t seed);

}  // namespace penstock
