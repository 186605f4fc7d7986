#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "datagen/commands/command_output.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/staging/link_farm.hpp"
#include "miniapps/staging/staged_files.hpp"

namespace penstock {
namespace {

constexpr size_t kMostNamedFiles = 5;  // the most files that the warnings name

// Returns the path of the link farm and adds it to the state. apply_plan() saves the state before any part of
// the farm exists, so that a revert finds the farm.
Result<std::filesystem::path> begin_farm(const Options& options, StagedTiers& tiers, StagedState& state) {
  const std::filesystem::path farm =
      std::filesystem::absolute(options.text("link-farm")).lexically_normal().string();
  std::string farm_path = farm.string();
  while (farm_path.size() > 1 && farm_path.ends_with('/')) farm_path.pop_back();
  const bool made_by_plan =
      std::find(state.link_farms.begin(), state.link_farms.end(), farm_path) != state.link_farms.end();
  PENSTOCK_TRY(check_farm(farm_path, tiers.slow, tiers.fast, made_by_plan));
  if (!made_by_plan) state.link_farms.push_back(farm_path);
  for (const Tier* tier : {&tiers.slow, &tiers.fast})
    if (tier->backend->caps().emulated)
      warn(fmt::format("tier '{}' is emulated, but reads through the links are not", tier->name));
  return std::filesystem::path(farm_path);
}

Json to_json(const StagingPlan& plan, const ApplyOutcome& files, const FarmOutcome& links) {
  Json json{{"kind", "staged"},
            {"plan", plan.id},
            {"files", plan.files.size()},
            {"bytes", plan.bytes()},
            {"copied", files.copied},
            {"bytes_copied", files.bytes_copied},
            {"already_there", files.already_there},
            {"changed", files.changed},
            {"wall_s", files.seconds},
            {"verdict", !files.complete         ? "interrupted"
                        : files.changed.empty() ? "ok"
                                                : "degraded"}};
  if (!links.path.empty())
    json["link_farm"] = {{"path", links.path}, {"to_fast", links.to_fast}, {"to_slow", links.to_slow}};
  return json;
}

std::string to_text(const StagingPlan& plan, const ApplyOutcome& files, const FarmOutcome& links,
                    const Output& output) {
  std::string text = fmt::format(
      "{} -> {}: {} of {} copied ({}) in {}, each read back and compared", printable(plan.slow.name),
      printable(plan.fast.name), format_count(files.copied), count_of(plan.files.size(), "file"),
      format_bytes(double(files.bytes_copied), output), format_seconds(files.seconds));
  if (files.already_there > 0)
    text += fmt::format("; {} already existed with the right content", format_count(files.already_there));
  text += files.complete
              ? "\n"
              : "\ninterrupted: every file is complete or absent; to continue, run the same command again\n";
  if (!links.path.empty())
    text += fmt::format("{}: {} to {}, {} to {}\n", printable(links.path), count_of(links.to_fast, "link"),
                        printable(plan.fast.name), format_count(links.to_slow), printable(plan.slow.name));
  return text;
}

void report_changed(const ApplyOutcome& outcome) {
  if (outcome.changed.empty()) return;
  for (size_t i = 0; i < std::min(outcome.changed.size(), kMostNamedFiles); ++i)
    warn(fmt::format("not copied: {}", printable(outcome.changed[i])));
  warn(
      fmt::format("{} of the originals changed after the plan was made and are not staged; for a new plan: "
                  "penstock stage advise",
                  outcome.changed.size()));
}

// Warns if links of an earlier `stage apply` lead to copies that are out of date. Called only if this `stage
// apply` makes no new links.
void report_old_links(const StagedState& state, const ApplyOutcome& outcome, std::string_view plan) {
  const bool copied_before =
      std::any_of(outcome.changed_names.begin(), outcome.changed_names.end(),
                  [&](const std::string& name) { return state.copied.contains(name); });
  if (!copied_before) return;
  for (const std::string& farm : state.link_farms)
    warn(
        fmt::format("the links in '{}' still lead to outdated copies of these originals; to make them again: "
                    "penstock stage apply {} --link-farm {}",
                    printable(farm), shell_word(plan), shell_word(farm)));
}

// Copies the files of the plan, then makes the link farm if one was requested. `links` is set only if a farm
// was made.
Result<ApplyOutcome> apply(const CommandContext& context, const StagingPlan& plan, StagedTiers& tiers,
                           FarmOutcome& links) {
  PENSTOCK_ASSIGN(StagedState state, begin_state(plan, tiers));
  std::filesystem::path farm;
  if (context.options.given("link-farm")) {
    PENSTOCK_ASSIGN(farm, begin_farm(context.options, tiers, state));
  }
  PENSTOCK_ASSIGN(ApplyOutcome files,
                  apply_plan(plan, tiers, state, threads_of(context), context.output.progress, context.warn));
  if (farm.empty()) report_old_links(state, files, context.positionals.front());
  if (farm.empty() || !files.complete) return files;
  auto made = make_farm(farm, plan, files.changed_names, tiers.slow, tiers.fast, context.output.progress);
  if (!made.ok()) {
    Error error = std::move(made).error();
    error.what += fmt::format(
        " (the plan's copies are on tier '{}'; to continue, run the same command again); to remove them: "
        "penstock stage revert {}",
        plan.fast.name, shell_word(context.positionals.front()));
    return error;
  }
  links = *made;
  return files;
}

Result<int> run_apply(const CommandContext& context) {
  PENSTOCK_ASSIGN(const StagingPlan plan, load_staging_plan(context.positionals.front()));
  if (!plan.should_stage) {
    if (context.output.json)
      print_json(to_json(plan, {.complete = true}, {}));
    else
      print_text(fmt::format("nothing to do: the plan's verdict is don't stage: {}\n", plan.reason));
    return 0;
  }
  PENSTOCK_ASSIGN(StagedTiers tiers, StagedTiers::open(plan));
  FarmOutcome links;
  const Result<ApplyOutcome> done = apply(context, plan, tiers, links);
  if (!done.ok()) {
    // If no state was saved, no file was copied. This apply then left only the lock file and its folders,
    // which forget_plan() removes.
    const auto started = load_staged_state(*tiers.fast.backend, plan.id);
    if (!started.ok() && started.error().code == Errc::not_found) forget_plan(tiers, plan.id);
    return done.error();
  }
  report_changed(*done);
  if (context.output.json)
    print_json(to_json(plan, *done, links));
  else
    print_text(to_text(plan, *done, links, context.output));
  return done->complete && done->changed.empty() ? 0 : 1;
}

constexpr std::string_view kCopyingGroup = "Copying";
constexpr OptionSpec kApplyOptions[] = {
    {.name = "link-farm",
     .role = OptionRole::target,
     .value = "DIR",
     .help = "create a folder of links for unmodified programs: each link leads to the staged copy, or else "
             "to the original; revert removes it",
     .group = kCopyingGroup},
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "workers",
     .group = kCopyingGroup,
     .alias = "numjobs",
     .at_least = 1},
};

}  // namespace

extern const CommandInfo stage_apply;
const CommandInfo stage_apply{
    .name = "stage apply",
    .summary = "copy the files of a plan to the fast tier and check them",
    .options = kApplyOptions,
    .run = &run_apply,
    .synopsis = "penstock stage apply PLAN [--link-farm DIR] [--threads N]",
    .examples = {"penstock stage apply plan.json --link-farm ~/data && python train.py ~/data   # checked "
                 "copies, and links to them"},
    .arguments = "PLAN",
};

}  // namespace penstock
