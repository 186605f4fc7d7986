// What the subcommands of `penstock checkpoint` share: exit codes, and how they end. Each is in a file of its
// name, gets the line's STOREs in order, and returns the exit code. The main program handles an
// Error, except `busy`, which ends the command with kLocked.
#pragma once

#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/saves.hpp"

namespace penstock {

// Exit codes of the command in addition to 0, 1, 2 and 77.
inline constexpr int kNotDurable = 3;
inline constexpr int kNothingRestorable = 4;
inline constexpr int kLocked = 5;

// What restore writes next to the restored files.
inline constexpr std::string_view kRestartName = "restart.json";

// --keep, --keep-fast, --on-full, --on-full-timeout, --oversize, --headroom and --read-back; the defaults of
// CheckpointPolicy where one of the first two is not given.
CheckpointPolicy policy_of(const Options& options);

// Prints an error that has an exit code of its own to stderr, as the main program would; on rank 0 only.
void report_failed(const CommandContext& context, const Error& error);

// CommandInfo::run of a subcommand that takes locks.
template <Result<int> (*work)(const CommandContext& context)>
Result<int> with_locks(const CommandContext& context) {
  Result<int> result = work(context);
  if (result.ok() || result.error().code != Errc::busy) return result;
  report_failed(context, result.error());
  return kLocked;
}

}  // namespace penstock
