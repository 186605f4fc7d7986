// Shared by the subcommands of `penstock checkpoint`: exit codes, how errors end a command, and the policy
// that the options describe. Each subcommand is in a file of its own name, gets the STOREs in the order of
// the command line, and returns the exit code. The main program handles an Error that a subcommand returns;
// but with_locks() turns `busy` into the exit code kRunLocked.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "miniapps/checkpoint/checkpointer.hpp"

namespace penstock {

// Exit codes of the command in addition to 0, 1, 2 and 77.
inline constexpr int kNotDurable = 3;
inline constexpr int kNothingRestorable = 4;
inline constexpr int kRunLocked = 5;

// The file that restore writes next to the restored files.
inline constexpr std::string_view kRestartName = "restart.json";

// Text such as "120.0": a step and its generation.
std::string short_name(const CheckpointId& id);

// The policy from --keep, --keep-fast, --on-full, --on-full-timeout, --oversize, --headroom and --read-back.
// Without --keep or --keep-fast, the default of CheckpointPolicy applies.
CheckpointPolicy policy_of(const Options& options);

// Prints an error to stderr as the main program prints errors, on rank 0 only. Used for errors for which the
// subcommand returns an exit code of its own.
void report_failed(const CommandContext& context, const Error& error);

// Runs a subcommand that takes locks: prints an error `busy` and returns kRunLocked for it. Such a subcommand
// uses it as its CommandInfo::run.
template <Result<int> (*work)(const CommandContext& context)>
Result<int> with_locks(const CommandContext& context) {
  Result<int> result = work(context);
  if (result.ok() || result.error().code != Errc::busy) return result;
  report_failed(context, result.error());
  return kRunLocked;
}

}  // namespace penstock
