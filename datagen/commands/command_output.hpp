// Shared by the commands of this component: the flag --threads, and output as JSON lines.
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

// The number of threads that --threads gives, or that worker_threads() chooses.
unsigned threads_of(const CommandContext& context);

// The numbers of objects that a scan left out, one for each reason.
Json scan_json(const ScanReport& scan);

}  // namespace penstock
