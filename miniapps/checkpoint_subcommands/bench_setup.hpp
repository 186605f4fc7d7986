// The resolved and checked options of one `checkpoint bench`, and the text that it prints.
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
#include "miniapps/checkpoint/checkpointer.hpp"
#include "miniapps/checkpoint/payload.hpp"
#include "miniapps/checkpoint_subcommands/bench_runs.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "miniapps/pipeline/burner.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct BenchSetup {
  std::vector<Tier> tiers;  // the slow tier, then the fast tier if there is one
  std::vector<std::string_view> arms;
  uint64_t steps = 100;
  uint64_t save_every = 20;  // steps from one checkpoint to the next
  std::chrono::nanoseconds step_time{0};
  std::unique_ptr<Burner> burner;  // does the work of a step; null: steps sleep
  CheckpointPolicy policy;
  Payload payload;
  double processors = 0;  // processors that a step uses
  uint64_t repeat = 1;
  double mtbf_s = 0;

  const Tier& slow() const { return tiers.front(); }
  const Tier* fast() const { return tiers.size() > 1 ? &tiers[1] : nullptr; }
};

// Resolves and checks the options. invalid_argument if they contradict each other; exhausted if no threads
// can be started for the work of a step.
Result<BenchSetup> resolve_bench(const CommandContext& context);

// Whether the tier is in memory, so that it loses all data with the machine, even synced data.
bool is_volatile(const Tier& tier);

// Returns the report: a table with a row for each arm, and sentences about the arms.
std::string bench_report(const BenchSetup& setup, int ranks, std::span<const Record> records,
                         const Output& output);

}  // namespace penstock
