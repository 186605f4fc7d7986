#include "results/tier_gate.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/manuals.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "results/record/record.hpp"
#include "results/record/time_plan.hpp"
#include "results/sweep/outcome.hpp"
#include "results/sweep/prepare.hpp"
#include "results/sweep/runner.hpp"

namespace penstock {
namespace {

constexpr std::array<const char*, 2> kArms{"base", "candidate"};
constexpr std::array<const char*, 2> kTierOptions{"base-tier", "candidate-tier"};
constexpr std::string_view kSource = "the command after --";

// The words after "--"; a leading "penstock" is left out.
Result<std::vector<std::string>> command_after_dashes(const CommandContext& context) {
  const auto divider = std::find(context.argv.begin(), context.argv.end(), "--");
  if (divider == context.argv.end())
    return make_error(Errc::invalid_argument,
                      "--base-tier needs the command to measure after '--', as in: penstock compare "
                      "--base-tier A --candidate-tier B -- read DATA");
  std::vector<std::string> words(divider + 1, context.argv.end());
  if (words.size() != context.positionals.size())
    return make_error(Errc::invalid_argument,
                      "'{}' is before '--': with --base-tier all words of the command are after it",
                      context.positionals[0]);
  if (words.front() == "penstock") words.erase(words.begin());
  if (words.empty()) return make_error(Errc::invalid_argument, "no command is after '--'");
  return words;
}

// Whether the first argument of the command that is not optional is a tier.
bool takes_tier_argument(const CommandInfo& command) {
  return command.arguments.starts_with("TIER") || command.arguments.starts_with("STORE");
}

Error no_tier_error(const CommandInfo& command) {
  std::vector<std::string_view> names;
  const std::span<const CommandInfo* const> commands = command_registry().present();
  for (const CommandInfo* other : with_subcommands({commands.begin(), commands.end()}))
    if (other->measures && other->subcommands == nullptr &&
        (find_option(*other, "tier") != nullptr || takes_tier_argument(*other)))
      names.push_back(other->name);
  return make_error(Errc::invalid_argument, "'penstock {}' takes no tier to measure; these commands do: {}",
                    command.name, fmt::join(names, ", "));
}

// Adds the options that the user gave to the command, as settings of all runs.
Result<void> add_settings(SweepSpec& spec, const Options& options) {
  Result<void> checked = success();
  options.visit([&](const OptionSpec& option, const std::string* text) {
    if (text == nullptr || !options.given(option.name)) return;
    const std::string name(option.name);
    if (is_set_by_sweep(name) || name == "tier")
      checked =
          make_error(Errc::invalid_argument, "'{}' cannot have --{}: the comparison gives that to each run",
                     spec.command, name);
    if (!spec.fixed_settings.empty() && spec.fixed_settings.back().key == name)
      spec.fixed_settings.back().values.push_back(*text);
    else
      spec.fixed_settings.push_back({name, {*text}});
  });
  return checked;
}

Result<SweepSpec> gate_spec(const CommandContext& context) {
  PENSTOCK_ASSIGN(std::vector<std::string> words, command_after_dashes(context));
  SweepSpec spec;
  spec.command = words.front();
  spec.repeats = uint64_t(context.options.integer("pairs"));
  spec.results = context.options.text("results");
  if (context.options.given("seed")) spec.seed = uint64_t(context.options.integer("seed"));
  PENSTOCK_ASSIGN(const CommandInfo* const top, measuring_command(spec.command));
  words.erase(words.begin());
  const CommandInfo& command = command_named_by(*top, words);
  const bool has_option = find_option(command, "tier") != nullptr;
  if (!has_option && !takes_tier_argument(command)) return no_tier_error(command);
  for (size_t i = 0; i < kArms.size(); ++i) {
    SweepArm& arm = spec.arms.emplace_back();
    arm.name = kArms[i];
    const std::string& tier = context.options.text(kTierOptions[i]);
    if (has_option)
      arm.fixed_settings.push_back({"tier", {tier}});
    else
      arm.arguments.push_back(tier);
  }
  if (!has_option) words.push_back(spec.arms[0].arguments[0]);  // the command needs one
  PENSTOCK_ASSIGN(CommandLine line, parse_command_line(*top, words, {}));
  if (!has_option) line.arguments.pop_back();
  if (&command != top) spec.arguments.emplace_back(last_word(command));
  spec.arguments.insert(spec.arguments.end(), line.arguments.begin(), line.arguments.end());
  PENSTOCK_TRY(add_settings(spec, line.options));
  // Without it, each run would also measure the place where the corpus is.
  if (find_option(command, "only-tiers") != nullptr && !line.options.given("only-tiers"))
    spec.fixed_settings.push_back({"only-tiers", {"true"}});
  return spec;
}

// Names the sweep by what it measures, so that the same command line finds its journal. A comparison that is
// complete does not continue: the next one gets a name of its own.
Result<void> choose_name(SweepWork& work) {
  Json identity = sweep_identity(work.spec);
  identity.erase("repeats");
  identity.erase("seed");
  const std::string text = identity.dump();
  const std::string name =
      fmt::format("compare-{}-{:08x}", work.spec.command, crc32c(std::as_bytes(std::span(text))));
  for (uint64_t number = 1;; ++number) {
    work.spec.name = number == 1 ? name : fmt::format("{}-{}", name, number);
    const auto history = SweepState::read_history(work.spec.results, work.spec.name);
    if (!history.ok() && history.error().code == Errc::not_found) return success();
    PENSTOCK_TRY(history);
    if (turns_left(work, *history) > 0) return success();
  }
}

Result<SweepWork> gate_work(const CommandContext& context) {
  SweepWork work;
  PENSTOCK_ASSIGN(work.spec, gate_spec(context));
  PENSTOCK_TRY(prepare_work(work, context, kSource));
  PENSTOCK_TRY(choose_name(work));
  work.needs_first_result = true;
  work.log = context.log;
  return work;
}

std::string plan_text(const SweepWork& work, const SweepHistory& history) {
  return fmt::format("{} of '{}' on the two tiers, in random order: {}",
                     count_of(turns_left(work, history), "pair"), work.spec.command,
                     to_text(time_left(work, history, SweepTimes(history))));
}

}  // namespace

Result<bool> compares_tiers(const Options& options) {
  const bool has_base = options.given("base-tier");
  if (has_base != options.given("candidate-tier"))
    return make_error(Errc::invalid_argument, "--base-tier and --candidate-tier are given together");
  for (const std::string_view name : {"pairs", "results", "seed", "dry-run"})
    if (!has_base && options.given(name))
      return make_error(Errc::invalid_argument, "--{} has no effect without --base-tier: leave it out", name);
  for (const std::string_view name : {"arms", "history"})
    if (has_base && options.given(name))
      return make_error(Errc::invalid_argument, "--{} has no effect with --base-tier: leave it out", name);
  if (has_base && options.text("base-tier") == options.text("candidate-tier"))
    return make_error(Errc::invalid_argument,
                      "--base-tier and --candidate-tier are the same tier: name two mounts or servers");
  return has_base;
}

Result<int> print_gate_plan(const CommandContext& context) {
  PENSTOCK_ASSIGN(SweepWork work, gate_work(context));
  SweepHistory history;
  if (auto known = SweepState::read_history(work.spec.results, work.spec.name); known.ok())
    history = *std::move(known);
  if (history.turns.empty()) expect_times(work, context);
  std::string text = plan_text(work, history) + "\n";
  for (size_t arm = 0; arm < kArms.size(); ++arm) {
    std::vector<std::string> line{"penstock"};
    for (std::string& word : run_arguments(work.spec, work.cells.front(), arm, *work.command))
      line.push_back(std::move(word));
    text += fmt::format("  {:<9}  {}\n", kArms[arm], shell_line(line));
  }
  print_text(text);
  return 0;
}

Result<std::vector<std::filesystem::path>> measure_tiers(const CommandContext& context) {
  PENSTOCK_ASSIGN(SweepWork work, gate_work(context));
  PENSTOCK_ASSIGN(SweepState state, open_sweep(work, context, kSource));
  const std::string journal = SweepState::journal_file(work.spec.results, work.spec.name).string();
  if (const size_t done = state.history().turns.size(); done > 0)
    context.log(
        fmt::format("continuing the comparison that ended early: {} of {} are done (remove '{}' to "
                    "start again)",
                    done, count_of(work.spec.repeats, "pair"), journal));
  if (state.history().turns.empty()) expect_times(work, context);
  context.log(plan_text(work, state.history()));
  const Output runs_output{
      .json = false, .progress = context.output.progress, .logs_steps = context.output.logs_steps};
  PENSTOCK_ASSIGN(const SweepEnd end, run_sweep(work, state, runs_output));
  if (end.turns_left > 0) {
    context.log(fmt::format("{} of {} are done; the same command line continues",
                            state.history().turns.size(), count_of(work.spec.repeats, "pair")));
    return make_error(Errc::interrupted, "ended by {}", end.reason);
  }
  std::vector<std::filesystem::path> folders;
  for (const std::string_view arm : kArms)
    folders.push_back(SweepState::records_folder(work.spec.results, work.spec.name, arm));
  context.log(fmt::format("records: {} and {}", folders[0].string(), folders[1].string()));
  return folders;
}

}  // namespace penstock
