// Loads a whole corpus once and then makes the batches of every epoch from memory.
//
// Upstream is a loader whose batches have one sample; it gives each sample once. The first call of next()
// takes all samples from it. From then on each batch is copied from the samples in memory, in the order of a
// sampler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "datagen/reading/sampler.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "miniapps/pipeline/batch_source.hpp"

namespace penstock {

// `samples` delivers each sample once. `pool` holds the memory (BatchPool::allocate_all_samples()) and is
// borrowed. `sampler_of` returns the sampler for this rank's part of a corpus of that many samples. The first
// call of next() fails with upstream's error, or with `corrupt` if there are too few good samples for a
// batch.
std::unique_ptr<BatchSource> make_memory_batches(std::unique_ptr<BatchSource> samples, BatchPool& pool,
                                                 const PlanLimits& limits,
                                                 std::function<Sampler(uint64_t samples)> sampler_of);

}  // namespace penstock
