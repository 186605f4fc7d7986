// `penstock stage SUBCOMMAND ...`: decides from a profile what to copy to a faster tier, and copies it.
#include "io_backends/core/cli/command.hpp"

namespace penstock {

const Registry<CommandInfo>& stage_registry();

extern const CommandInfo command_stage;
const CommandInfo command_stage{
    .name = "stage",
    .summary = "recommend files to stage on a faster tier, estimate the gain, and stage them",
    .synopsis =
        "penstock stage advise SESSION... --slow TIER --fast TIER --capacity SIZE [options] | apply PLAN | "
        "revert PLAN",
    .examples = {"penstock stage advise session --slow /data --fast /nvme/p --capacity 4GiB -o plan.json   # "
                 "which files, and when it pays off",
                 "penstock stage apply plan.json --link-farm ~/data && python train.py ~/data   # checked "
                 "copies, and links to them"},
    .notes =
        "`penstock read` and `train` use a plan with --overlay PLAN; other programs use the links. Exit "
        "codes: 0 done; 1 if\nsome originals changed, some copies could not be removed, or the command "
        "failed (folder missing, disk full, a file\nin the way, not a plan); 2 for wrong usage.",
    .arguments = "SUBCOMMAND SESSION|PLAN...",
    .subcommands = [] { return stage_registry().present(); },
};

}  // namespace penstock
