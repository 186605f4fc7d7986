// What a line of `penstock generate` asks for, and whether the place for it takes it.
#pragma once

#include <optional>

#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generation.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// --threads, or as many as this process has processors; of each rank.
unsigned generate_threads(const Options& options);
bool has_count(const Options& options);

// read_started_generation(), as rank 0 sees it, on every rank. Collective.
Result<std::optional<GenerationState>> started_before(Communicator& ranks, Tier& tier);

// What the line leaves open is taken from `started`, the data set that --resume finds. Collective: every rank
// has the same plan, or none has one.
Result<Generation> decide_generation(const CommandContext& context,
                                     const std::optional<GenerationState>& started);

// Says on stderr where what was asked for is not what comes of it.
void describe_difference(const Options& options, const Generation& generation);

// Whether all of it is there already, as far as a look at the names tells; an error is what a run would be
// refused for. For one rank.
Result<bool> inspect_target(const Options& options, const Generation& generation, Tier& tier, bool started);

}  // namespace penstock
