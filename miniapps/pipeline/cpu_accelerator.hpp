// The accelerator `cpu`: a network that is really trained on the batches, by this machine's processors.
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/pipeline/accelerator.hpp"
#include "miniapps/pipeline/network.hpp"

namespace penstock {

// AlexNet, by the words behind "cpu:". `unsupported` in a build without oneDNN; invalid_argument for several
// in one process, which has its processors once.
Result<std::unique_ptr<Accelerator>> make_cpu_accelerator(std::span<const OptionWord> words,
                                                          const AcceleratorGroup& group);

// Any network, which is made and given its memory by prepare(). Takes f32 of its size, in both orders of
// axes. Step::deadline is Step::end: nothing says how long it should take. A sample without a label is of
// class 0; a label that the network has no class for is invalid_argument. Facts: `loss_first` and
// `loss_last`, the mean losses of the first and the last batch.
std::unique_ptr<Accelerator> make_training_accelerator(const Network& network, unsigned threads,
                                                       std::uint64_t seed);

}  // namespace penstock
