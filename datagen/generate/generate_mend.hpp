// Makes a finished data set whole again: what is gone or of another size gets the bytes that its manifest
// names. Only generate.cpp uses it.
#pragma once

#include "datagen/generate/generate.hpp"
#include "datagen/generate/generation.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Looks at every object's size, and makes what is wrong again, shared out over the ranks. `corrupt`, naming
// the object, where this build would make other bytes of it: those never get its name, and what was wrong
// there is gone. Collective, while rank 0 holds the target's lock.
Result<void> mend_finished(const Generation& generation, Tier& tier, unsigned threads, Communicator& ranks,
                           Progress& progress, Generated& out);

}  // namespace penstock
