// What one `checkpoint bench` is asked to do, resolved and checked; and what it prints of it.
#pragma once

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
#include "miniapps/checkpoint_subcommands/saving_run.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "miniapps/pipeline/burner.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct BenchSetup {
  std::vector<Tier> tiers;  // the slow one, and the fast one where there is one
  std::vector<SavingArm> arms;
  SavingSchedule schedule;
  std::unique_ptr<Burner> burner;  // the schedule's
  CheckpointPolicy policy;
  Payload payload;
  double processors = 0;  // that a step works on
  std::uint64_t repeat = 1;
  double mtbf_s = 0;

  const Tier& slow() const { return tiers.front(); }
  const Tier* fast() const { return tiers.size() > 1 ? &tiers[1] : nullptr; }
};

// invalid_argument where the words make no sense; exhausted where there are no threads for a step's work.
Result<BenchSetup> resolve_bench(const CommandContext& context, StoreArguments arguments);

// What a tier of memory holds is gone with the machine, whatever was synced.
bool forgets(const Tier& tier);

// The tables for people, a line for each arm, and sentences about them.
std::string bench_report(const BenchSetup& setup, int ranks, std::span<const Record> records,
                         const Output& output);

}  // namespace penstock
