// `penstock stage SUBCOMMAND ...`: decides from a profile what to copy to a faster tier, and copies it.
#include <fmt/format.h>

#include <climits>
#include <string>
#include <vector>

#include "datagen/commands/command_output.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/subcommands.hpp"
#include "miniapps/stage_subcommands/subcommands.hpp"

namespace penstock {
namespace {

constexpr std::string_view kAdvise = "advise: what to stage";
constexpr std::string_view kMeasure = "advise: how the tiers are measured";
constexpr std::string_view kApply = "apply and revert";

constexpr OptionSpec kOptions[] = {
    {.name = "slow",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "the tier that holds what the session read: a folder, or TIER",
     .group = kAdvise},
    {.name = "fast",
     .role = OptionRole::target,
     .value = "TIER",
     .help = "the tier to stage to",
     .group = kAdvise},
    {.name = "capacity",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .help = "of the fast tier, to be used at most",
     .group = kAdvise,
     .at_least = 1},
    {.name = "policy",
     .role = OptionRole::work,
     .value = "density|threshold=SIZE|best-single|first-come",
     .fallback = "density",
     .help =
         "density: most time saved for a byte first, as far as it makes the epoch shorter; threshold: all "
         "files below a size; best-single: one file; first-come: as they were first read (to compare with)",
     .group = kAdvise},
    {.name = "threads",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "advise: that the program will read by (as many as the session saw, if not given); apply and "
             "revert: workers",
     .group = kAdvise,
     .at_least = 1},
    {.name = "epochs",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "that are still to come: a copy that pays later is not advised",
     .group = kAdvise,
     .at_least = 1},
    {.name = "cache",
     .role = OptionRole::work,
     .type = OptionType::choice,
     .value = "asis|cold",
     .fallback = "asis",
     .help = "asis: what is in this machine's page cache now costs nothing on either tier; cold: as if "
             "the page cache were empty",
     .group = kAdvise},
    {.name = "include",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "only files that match, as for profile report",
     .group = kAdvise,
     .repeated = true},
    {.name = "exclude",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "not these",
     .group = kAdvise,
     .repeated = true},
    {.name = "output",
     .role = OptionRole::output,
     .value = "PLAN",
     .help = "write the plan to this file",
     .group = kAdvise,
     .alias = "o"},
    {.name = "min-time",
     .role = OptionRole::repeat,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "250ms",
     .help = "of each repeat of each size of files and number of threads",
     .group = kMeasure},
    {.name = "repeat",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "3",
     .help = "repeats, from which the interval comes",
     .group = kMeasure,
     .at_least = 1},
    {.name = "speeds",
     .role = OptionRole::target,
     .value = "RESULTS",
     .help = "measure nothing: take records that `penstock tiers --probe` made of the same two TIERs",
     .group = kMeasure,
     .repeated = true},
    {.name = "seed",
     .role = OptionRole::repeat,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "1",
     .help = "of what is drawn at random",
     .group = kMeasure,
     .at_least = 0},
    {.name = "link-farm",
     .role = OptionRole::target,
     .value = "DIR",
     .help = "apply: make a folder of links there, to the copy where there is one, else to the original, for "
             "programs that know nothing of tiers; revert takes it away",
     .group = kApply},
};

struct Subcommand {
  std::string_view name;
  Result<int> (*run)(const CommandContext& context, StageArguments arguments);
  std::vector<std::string_view> takes;
  std::size_t max_arguments;
  std::string_view argument;
};

const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> all{
      {"advise",
       stage_advise,
       {"slow", "fast", "capacity", "policy", "threads", "epochs", "cache", "include", "exclude", "output",
        "min-time", "repeat", "speeds", "seed"},
       SIZE_MAX,
       "SESSION"},
      {"apply", stage_apply, {"link-farm", "threads"}, 1, "PLAN"},
      {"revert", stage_revert, {"threads"}, 1, "PLAN"},
  };
  return all;
}

std::vector<SubcommandOptions> subcommand_options() {
  return options_of(subcommands());
}

Result<int> run(const CommandContext& context) {
  PENSTOCK_ASSIGN(const Subcommand* const subcommand,
                  find_subcommand("stage", subcommands(), context.positionals[0]));
  PENSTOCK_TRY(check_subcommand_options(subcommand->name, subcommand_options(), context.argv));
  const StageArguments arguments = context.positionals.subspan(1);
  if (arguments.empty())
    return make_error(Errc::invalid_argument, fmt::format("'{}' needs a {}: see penstock stage --help",
                                                          subcommand->name, subcommand->argument));
  if (arguments.size() > subcommand->max_arguments)
    return make_error(Errc::invalid_argument,
                      fmt::format("'{}' takes one {}; '{}' is one word too many", subcommand->name,
                                  subcommand->argument, arguments[1]));
  return subcommand->run(context, arguments);
}

}  // namespace

extern const CommandInfo command_stage;
const CommandInfo command_stage{
    .name = "stage",
    .summary = "what of a program's files to put on a faster tier, what that brings, and doing it",
    .options = kOptions,
    .run = &run,
    .synopsis =
        "penstock stage advise SESSION... --slow TIER --fast TIER --capacity SIZE [options] | apply PLAN | "
        "revert PLAN",
    .examples = {"penstock stage advise session --slow /data --fast /nvme/p --capacity 4GiB -o plan.json   # "
                 "what, and "
                 "when it pays",
                 "penstock stage apply plan.json --link-farm ~/data && python train.py ~/data   # copies, "
                 "checked, and "
                 "links to them"},
    .notes =
        "A SESSION is what `penstock profile run -o SESSION -- COMMAND` left of any program. advise measures "
        "both\n"
        "tiers for some seconds with files of the sizes that the session read, and says what an epoch would "
        "take.\n"
        "Programs of our own read the two tiers by `--overlay PLAN` (read, train), others by the links. "
        "`stage\n"
        "revert PLAN` takes away the copies and the links, but nothing that somebody changed. Exit codes: 0 "
        "done,\n"
        "also for the verdict \"don't stage\"; 1 some originals changed, some copies stay, or it failed (no "
        "such folder,\n"
        "no room, a file in the way, a file that is no plan); 2 usage. advise writes some 96 MiB to the fast "
        "tier, a folder\n"
        "that has to be there, and takes them away again.",
    .arguments = "SUBCOMMAND SESSION|PLAN...",
    .min_arguments = 1,
    .max_arguments = INT_MAX,
    .subcommands = subcommand_options,
};

}  // namespace penstock
