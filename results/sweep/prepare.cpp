#include "results/sweep/prepare.hpp"

#include <fmt/format.h>

#include <filesystem>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/system/subprocess.hpp"
#include "results/sweep/slurm.hpp"

namespace penstock {
namespace {

constexpr double kLockPatience_s = 60;

Error in_source(std::string_view source, const Error& error) {
  return make_error(error.code, "{}: {}", source, error.what);
}

Result<void> check_lines(const SweepWork& work, std::string_view source) {
  const SweepSpec& spec = work.spec;
  for (const SweepCell& cell : work.cells)
    for (size_t arm = 0; arm < runs_per_turn(spec); ++arm) {
      if (arm < spec.arms.size() && !spec.arms[arm].program.empty()) continue;
      std::vector<std::string> words = run_arguments(spec, cell, arm, *work.command);
      words.erase(words.begin());
      if (const auto line = parse_command_line(*work.command, words, {}); !line.ok())
        return make_error(line.error().code, "{}, cell '{}': {}", source, cell.title, line.error().what);
    }
  return success();
}

}  // namespace

Result<const CommandInfo*> measuring_command(const std::string& name) {
  std::vector<std::string_view> valid;
  for (const CommandInfo* command : command_registry().present()) {
    if (!command->measures) continue;
    if (command->name == name) return command;
    valid.push_back(command->name);
  }
  return unknown_name("measuring command", name, valid);
}

Result<void> prepare_work(SweepWork& work, const CommandContext& context, std::string_view source) {
  const auto prepare = [&]() -> Result<void> {
    PENSTOCK_ASSIGN(work.command, measuring_command(work.spec.command));
    PENSTOCK_TRY(use_own_names(work.spec, *work.command));
    PENSTOCK_TRY(check_launcher(work.spec));
    PENSTOCK_ASSIGN(work.cells, sweep_cells(work.spec));
    return success();
  };
  if (const Result<void> prepared = prepare(); !prepared.ok()) return in_source(source, prepared.error());
  PENSTOCK_ASSIGN(work.program, this_program());
  work.warn = context.warn;
  work.no_config = context.options.flag("no-config");
  work.launcher = context.launcher;
  work.live_tiers = context.live_tiers;
  work.job = own_slurm_job();
  work.uses_srun = !work.job.empty();
  return check_lines(work, source);
}

Result<SweepState> open_sweep(SweepWork& work, const CommandContext& context, std::string_view source) {
  const SweepSpec& spec = work.spec;
  PENSTOCK_ASSIGN(SweepState state, SweepState::open(spec.results, spec.name, kLockPatience_s, context.log));
  Json identity = sweep_identity(spec);
  const SweepHistory& history = state.history();
  if (history.identity.is_null()) {
    std::random_device entropy;
    work.seed = spec.seed.value_or(entropy() & 0x7fffffffU);
    identity["seed"] = work.seed;
    PENSTOCK_TRY(state.record_sweep(identity, work.seed));
    work.suite = state.history().suite;
    return state;
  }
  if (const auto added = check_only_added(history.identity, identity); !added.ok())
    return make_error(Errc::invalid_argument,
                      "{}: the sweep '{}' was started differently: {}; give it another name, or "
                      "remove '{}' to start again (its records stay)",
                      source, spec.name, added.error().what,
                      SweepState::journal_file(spec.results, spec.name).string());
  work.seed = history.seed;
  work.suite = history.suite;
  identity["seed"] = work.seed;
  if (identity != history.identity) PENSTOCK_TRY(state.record_sweep(identity, work.seed));
  return state;
}

}  // namespace penstock
