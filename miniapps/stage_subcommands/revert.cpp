#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "datagen/commands/command_output.hpp"
#include "datagen/staging/overlay.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/staging/link_farm.hpp"
#include "miniapps/staging/staged_files.hpp"

namespace penstock {
namespace {

constexpr size_t kMostNamedEntries = 5;

Json to_json(const StagingPlan& plan, const RevertOutcome& outcome) {
  return {{"kind", "reverted"},
          {"plan", plan.id},
          {"removed", outcome.removed},
          {"bytes_removed", outcome.bytes_removed},
          {"not_there", outcome.not_there},
          {"found_before", outcome.found_before},
          {"kept", outcome.kept},
          {"verdict", !outcome.complete      ? "interrupted"
                      : outcome.kept.empty() ? "ok"
                                             : "degraded"}};
}

std::string to_text(const StagingPlan& plan, const RevertOutcome& outcome, const Output& output) {
  std::string text = fmt::format("{}: {} removed ({})", printable(plan.fast.name),
                                 count_of(outcome.removed, "copy", "copies"),
                                 format_bytes(double(outcome.bytes_removed), output));
  if (outcome.found_before > 0)
    text += fmt::format("; {} existed before this plan and stay", format_count(outcome.found_before));
  return text + (outcome.complete ? "\n" : "\ninterrupted: to continue, run the same command again\n");
}

int report_reverted(const CommandContext& context, const StagingPlan& plan, const RevertOutcome& outcome) {
  for (size_t i = 0; i < std::min(outcome.kept.size(), kMostNamedEntries); ++i)
    warn(fmt::format("not removed: {}", printable(outcome.kept[i])));
  if (!outcome.kept.empty())
    warn(fmt::format("{} were not made by penstock stage apply: check them, and remove unneeded ones by hand",
                     outcome.kept.size()));
  if (context.output.json)
    print_json(to_json(plan, outcome));
  else
    print_text(to_text(plan, outcome, context.output));
  return outcome.complete && outcome.kept.empty() ? 0 : 1;
}

int report_nothing_staged(const CommandContext& context, const StagingPlan& plan) {
  note(fmt::format("tier '{}' has no files of this plan", plan.fast.name));
  return report_reverted(context, plan, {.complete = true});
}

Result<int> run_revert(const CommandContext& context) {
  PENSTOCK_ASSIGN(const StagingPlan plan, load_staging_plan(context.positionals.front()));
  PENSTOCK_ASSIGN(const bool started, is_started(plan));
  if (!started) return report_nothing_staged(context, plan);
  PENSTOCK_ASSIGN(StagedTiers tiers, StagedTiers::open(plan));
  const Result<StagedState> state = load_staged_state(*tiers.fast.backend, plan.id);
  if (!state.ok() && state.error().code == Errc::not_found) {
    forget_plan(tiers, plan.id);
    return report_nothing_staged(context, plan);
  }
  PENSTOCK_TRY(state);
  // Links are removed first, so that no program finds a link without a target.
  std::vector<std::string> foreign_entries;
  for (const std::string& farm : state->link_farms) {
    if (!farm_is_there(farm))
      warn(fmt::format(
          "the link farm '{}' does not exist: if it was moved, its links to copies are now broken",
          printable(farm)));
    PENSTOCK_ASSIGN(const std::vector<std::string> kept, remove_farm(farm, tiers.slow, tiers.fast));
    for (const std::string& one : kept)
      foreign_entries.push_back(fmt::format("'{}': not a link of this plan", one));
  }
  PENSTOCK_ASSIGN(RevertOutcome outcome,
                  revert_plan(plan, tiers, *state, threads_of(context), context.output.progress));
  outcome.kept.insert(outcome.kept.end(), foreign_entries.begin(), foreign_entries.end());
  return report_reverted(context, plan, outcome);
}

constexpr OptionSpec kRevertOptions[] = {
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "workers",
     .group = "Removing",
     .alias = "numjobs",
     .at_least = 1},
};

}  // namespace

extern const CommandInfo stage_revert;
const CommandInfo stage_revert{
    .name = "stage revert",
    .summary = "remove the copies and links of a plan, except those that were changed since",
    .options = kRevertOptions,
    .run = &run_revert,
    .synopsis = "penstock stage revert PLAN [--threads N]",
    .examples = {"penstock stage revert plan.json   # exit 1 if a copy could not be removed"},
    .arguments = "PLAN",
};

}  // namespace penstock
