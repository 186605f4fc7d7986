// The command `penstock read`, and the parser of its options.
#pragma once

#include <string_view>

#include "benchmarks/read/read_engine.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

extern const CommandInfo command_read;

// Parses a rate such as "500", "500/s", "2.5k", "3M/s" or "500/s,poisson". Fails with invalid_argument if the
// text is no rate, or the rate is below 0.001 or above 1e9 per second.
Result<OpenLoop> parse_open_loop(std::string_view text);

// Parses and checks the options. If they contradict each other or the number of ranks, it fails with
// invalid_argument and names them.
Result<ReadOptions> parse_read_options(const CommandContext& context);

}  // namespace penstock
