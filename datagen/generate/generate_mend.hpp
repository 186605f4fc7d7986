// Repairs a finished data set: makes objects that are missing or have a wrong size again, with the bytes that
// the manifest's checksums require. Only generate.cpp uses it.
#pragma once

#include "datagen/generate/generate.hpp"
#include "datagen/generate/generation.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Checks the size of every object. Makes the wrong ones again; the ranks share this work. `corrupt`, naming
// the object, if this build would make other bytes of it. Such bytes are never published under the object's
// name, but the old wrong object has been removed by then. Collective; rank 0 holds the target's lock.
Result<void> repair_finished(const Generation& generation, Tier& tier, unsigned threads, Communicator& ranks,
                             Progress& progress, GenerateResult& out);

}  // namespace penstock
