// `penstock checkpoint SUBCOMMAND STORE...`: saves the state of a training straight to a slow tier, or first
// to a fast tier and from there to the slow one.
#include "io_backends/core/cli/command.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"

namespace penstock {

const Registry<CommandInfo>& checkpoint_registry();

extern const CommandInfo command_checkpoint;
const CommandInfo command_checkpoint{
    .name = "checkpoint",
    .summary = "save and restore checkpoints through a burst buffer, and report when each copy became safe",
    .synopsis = "penstock checkpoint bench|save|restore|verify|ls|drain|gc|status STORE... [options]",
    .examples = {"penstock checkpoint save /pfs/ckpt --burst-buffer /dev/shm/bb --payload alexnet-adam   # "
                 "reports time to fast and to durable",
                 "penstock checkpoint restore /dev/shm/bb /pfs/ckpt --to restored   # the newest intact "
                 "checkpoint on either tier"},
    .arguments = "SUBCOMMAND STORE...",
    .measures = true,
    .runs_on_ranks = true,
    .subcommands = [] { return checkpoint_registry().present(); },
    .metrics = bench_metrics::kAll};

}  // namespace penstock
