// Turns a command line of `penstock generate` into a Generation, and checks its target.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "datagen/generate/generate_state.hpp"
#include "datagen/generate/generation.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// How many threads each rank uses: --threads, or the number of processors that this process may use.
unsigned generate_threads(const Options& options);
bool gives_sample_count(const Options& options);

// Decides what data set to make. Values that the command line does not give come from `started`, the data set
// that --resume found. Each rank makes its own plan. The plans of two ranks can differ, for example because
// --size-for uses the memory of the rank's node.
Result<Generation> plan_from_options(const CommandContext& context,
                                     const std::optional<GenerationState>& started);

// Notes for the user, one sentence each, on what will differ from the request.
std::vector<std::string> describe_differences(const Options& options, const Generation& generation);

// Returns true if the data set is already complete, judged by the names and sizes of its objects. Fails with
// the reason why a run would fail. `log` gets a note if objects must be made again. Only one rank calls it.
Result<bool> inspect_target(const Options& options, const Generation& generation, Tier& tier, bool started,
                            const std::function<void(std::string_view)>& log);

}  // namespace penstock
