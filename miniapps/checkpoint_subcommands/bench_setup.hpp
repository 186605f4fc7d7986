// What one `checkpoint bench` is asked to do, resolved and checked; and what it prints of it.
#pragma once

#include <chrono>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/checkpoint/saves.hpp"
#include "miniapps/checkpoint_subcommands/bench_runs.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "miniapps/pipeline/burner.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct BenchSetup {
  std::vector<Tier> tiers;  // the slow one, and the fast one where there is one
  std::vector<std::string_view> arms;
  std::uint64_t steps = 100;
  std::uint64_t every = 20;  // steps from one checkpoint to the next
  std::chrono::nanoseconds step_time{0};
  std::unique_ptr<Burner> burner;  // what works in a step; null: steps sleep
  CheckpointPolicy policy;
  Payload payload;
  double processors = 0;  // that a step works on
  std::uint64_t repeat = 1;
  double mtbf_s = 0;

  const Tier& slow() const { return tiers.front(); }
  const Tier* fast() const { return tiers.size() > 1 ? &tiers[1] : nullptr; }
};

// invalid_argument where the words make no sense; exhausted where there are no threads for a step's work.
Result<BenchSetup> resolve_bench(const CommandContext& context);

// What a tier of memory holds is gone with the machine, whatever was synced.
bool forgets(const Tier& tier);

// The tables for people, a line for each arm, and sentences about them.
std::string bench_report(const BenchSetup& setup, int ranks, std::span<const Record> records,
                         const Output& output);

}  // namespace penstock
