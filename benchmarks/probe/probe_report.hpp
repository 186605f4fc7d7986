// Turns the results of `tiers --probe` into a record and a table.
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

// `bytes_read`: bytes that all ranks together read from the tier during the whole probe.
Trial probe_record(const Run& run, const Tier& tier, const ProbeCell& cell, uint64_t bytes_read);

// Returns a table with one row for each probe. Below it, one sentence names each probe that was left out, and
// one each probe whose ranks differ.
std::string probe_table(std::span<const Record> records, const Output& output);

}  // namespace penstock
