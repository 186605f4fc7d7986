// What several commands of datagen need: the flag --threads, and output as JSON lines.
#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "results/record/record.hpp"

namespace penstock {

class Manifest;
struct ScanReport;

inline constexpr OptionSpec kThreadsOption{
    .name = "threads",
    .role = OptionRole::work,
    .type = OptionType::integer,
    .value = "N",
    .help = "number of worker threads (default: number of CPUs, at least 4)",
    .group = "Work",
    .alias = "numjobs",
    .at_least = 1};

// The number of threads: that of --threads, else that of worker_threads().
unsigned threads_of(const CommandContext& context);

// How many objects a scan left out for each reason.
Json scan_json(const ScanReport& scan);

// How many objects have each extension, as in {".jpg": 31, ".png": 3}; "" is the one of objects without.
// Extensions are in lower case.
std::map<std::string, uint64_t> count_extensions(const Manifest& manifest);
// The same as a text, the most frequent first: "31 .jpg, 3 .png". It names at most eight.
std::string extensions_text(const std::map<std::string, uint64_t>& counts, const Output& output);

}  // namespace penstock
