#include "miniapps/checkpoint_subcommands/subcommands.hpp"

#include <fmt/format.h>

#include <cstdio>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"

namespace penstock {

CheckpointPolicy policy_of(const Options& options) {
  CheckpointPolicy policy;
  if (options.given("keep")) policy.keep_on_slow = uint64_t(options.integer("keep"));
  if (options.given("keep-fast")) policy.keep_on_fast = uint64_t(options.integer("keep-fast"));
  policy.on_full = on_full_of(options.text("on-full"));
  policy.block_for = options.duration("on-full-timeout");
  policy.fail_oversize = options.text("oversize") == "fail";
  policy.headroom = options.size("headroom");
  policy.read_back = options.flag("read-back");
  policy.log = warn;
  return policy;
}

void report_failed(const CommandContext& context, const Error& error) {
  if (!context.communicator.root()) return;
  const std::string text = fmt::format("penstock {}: {}\n", context.command, printable(error.message()));
  std::fwrite(text.data(), 1, text.size(), stderr);
}

std::string short_name(const CheckpointId& id) {
  return fmt::format("{}.{}", id.step, id.generation);
}

}  // namespace penstock
