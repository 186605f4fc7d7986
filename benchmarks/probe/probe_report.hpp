// Turns the results of `tiers --probe` into a record and a table.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/probe/tier_probe.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// Makes the record of one cell. `bytes_read` is what all ranks together read from the tier during the whole
// probe.
Trial probe_record(const Run& run, const Tier& tier, const ProbeCell& cell, uint64_t bytes_read);

// A table with one row for each probe. Sentences below it name each probe that was left out, and each probe
// whose ranks differ.
std::string probe_table(std::span<const Record> records, const Output& output);

// Whether name `a` comes before `b`. Numbers in the names are compared by value: "4k" comes before "128k",
// and depth 8 before depth 32.
bool is_before_by_numbers(std::string_view a, std::string_view b);
// The names of the record's probes, such as "read.random.4k.8", sorted by is_before_by_numbers().
std::vector<std::string> probes_of(const Record& record);

}  // namespace penstock
