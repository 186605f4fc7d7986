// `penstock checkpoint SUBCOMMAND STORE...`: the state of a training on a slow tier and a fast one in front
// of it.
#include <fmt/format.h>

#include <cstdio>
#include <string>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"

namespace penstock {

const Registry<CommandInfo>& checkpoint_registry();

CheckpointPolicy policy_of(const Options& options) {
  CheckpointPolicy policy;
  if (options.given("keep")) policy.keep = static_cast<std::uint64_t>(options.integer("keep"));
  if (options.given("keep-fast")) policy.keep_fast = static_cast<std::uint64_t>(options.integer("keep-fast"));
  policy.on_full = on_full_of(options.text("on-full"));
  policy.block_for = options.duration("on-full-timeout");
  policy.oversize = oversize_of(options.text("oversize"));
  policy.headroom = options.size("headroom");
  policy.read_back = options.flag("read-back");
  return policy;
}

void report_failed(const CommandContext& context, const Error& error) {
  if (!context.communicator.root()) return;
  const std::string text = fmt::format("penstock {}: {}\n", context.command, printable(error.message()));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

extern const CommandInfo command_checkpoint;
const CommandInfo command_checkpoint{
    .name = "checkpoint",
    .summary = "saves and restores a training's state through a burst buffer: what holds, and since when",
    .synopsis = "penstock checkpoint bench|save|restore|verify|ls|drain|gc|status STORE... [options]",
    .examples =
        {"penstock checkpoint save /pfs/ckpt --burst-buffer /dev/shm/bb --payload alexnet-adam   # times to "
         "fast, durable",
         "penstock checkpoint restore /dev/shm/bb /pfs/ckpt --to restored   # the newest that is whole, on "
         "either tier"},
    .arguments = "SUBCOMMAND STORE...",
    .measures = true,
    .ranks = true,
    .subcommands = [] { return checkpoint_registry().present(); },
    .metrics = bench_metrics::kAll};

}  // namespace penstock
