// `penstock stage SUBCOMMAND ...`: decides from a profile what to copy to a faster tier, and copies it.
#include "io_backends/core/cli/command.hpp"

namespace penstock {

const Registry<CommandInfo>& stage_registry();

extern const CommandInfo command_stage;
const CommandInfo command_stage{
    .name = "stage",
    .summary = "what of a program's files to put on a faster tier, what that brings, and doing it",
    .synopsis =
        "penstock stage advise SESSION... --slow TIER --fast TIER --capacity SIZE [options] | apply PLAN | "
        "revert PLAN",
    .examples = {"penstock stage advise session --slow /data --fast /nvme/p --capacity 4GiB -o plan.json   # "
                 "what, and when it pays",
                 "penstock stage apply plan.json --link-farm ~/data && python train.py ~/data   # copies, "
                 "checked, and links to them"},
    .notes =
        "Programs of our own read the two tiers by `--overlay PLAN` (read, train), others by the links. Exit "
        "codes: 0 done;\n1 some originals changed, some copies stay, or it failed (no such folder, no room, "
        "a "
        "file in the way, a file that\nis no plan); 2 usage.",
    .arguments = "SUBCOMMAND SESSION|PLAN...",
    .subcommands = [] { return stage_registry().present(); },
};

}  // namespace penstock
