// Loads a whole corpus once and then makes the batches of every epoch from memory.
//
// The samples come from a loader, `upstream`, whose batches have one sample each. This loader gives each
// sample once. The first call of next() takes all samples from it. Every batch is then copied from the
// samples in memory, in the order of a sampler.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>

#include "datagen/reading/sampler.hpp"
#include "miniapps/pipeline/batch.hpp"
#include "miniapps/pipeline/batch_plan.hpp"
#include "miniapps/pipeline/batch_source.hpp"

namespace penstock {

// Makes a source of batches that holds all samples in memory. `samples` delivers each sample once. `pool` is
// borrowed; its allocate_all_samples() must have been called, and its memory holds the samples.
// `sampler_of(n)` returns the sampler for this rank's part of a corpus of n samples. The first call of next()
// fails with the error of `samples`, or with `corrupt` if there are too few good samples for a batch.
std::unique_ptr<BatchSource> make_memory_batches(std::unique_ptr<BatchSource> samples, BatchPool& pool,
                                                 const PlanLimits& limits,
                                                 std::function<Sampler(uint64_t samples)> sampler_of);

}  // namespace penstock
