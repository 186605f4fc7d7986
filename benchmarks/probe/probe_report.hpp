// What `tiers --probe` found, as records and for readers.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "benchmarks/probe/tier_probe.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// `bytes_read`: from the tier by the whole probe, over all ranks.
Trial probe_record(const Run& run, const Tier& tier, const ProbeCell& cell, std::uint64_t bytes_read);

// A row a probe, a sentence for what was left out, and one for each probe whose ranks lie apart.
std::string probe_table(std::span<const Record> records, const Output& output);

}  // namespace penstock
