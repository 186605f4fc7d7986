// What the commands of this room share: their --threads, and what they report of a scan.
#pragma once

#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct ScanReport;

inline constexpr OptionSpec kThreadsOption{
    .name = "threads",
    .role = OptionRole::work,
    .type = OptionType::integer,
    .value = "N",
    .help = "workers (as many as there are processors, and at least 4, if not given)",
    .group = "Work",
    .at_least = 1};

// As given, or worker_threads()'s own choice.
unsigned threads_of(const CommandContext& context);

// What a scan left out, counted by why.
Json scan_json(const ScanReport& scan);

}  // namespace penstock
