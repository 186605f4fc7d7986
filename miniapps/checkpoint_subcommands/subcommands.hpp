// The subcommands of `penstock checkpoint`: one function each, in a file of its name. They get the line's
// STOREs, in order, and return the exit code. The main program handles an Error, except `busy`, which ends
// the command with kLocked.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// Exit codes of the command in addition to 0, 1, 2 and 77.
inline constexpr int kNotDurable = 3;
inline constexpr int kNothingRestorable = 4;
inline constexpr int kLocked = 5;

// What restore writes next to the restored files.
inline constexpr std::string_view kRestartName = "restart.json";

using StoreArguments = std::span<const std::string>;

// Over all ranks, collective.
Result<int> checkpoint_save(const CommandContext& context, StoreArguments arguments);
Result<int> checkpoint_bench(const CommandContext& context, StoreArguments arguments);
Result<int> checkpoint_restore(const CommandContext& context, StoreArguments arguments);
// Of one process.
Result<int> checkpoint_verify(const CommandContext& context, StoreArguments arguments);
Result<int> checkpoint_ls(const CommandContext& context, StoreArguments arguments);
Result<int> checkpoint_drain(const CommandContext& context, StoreArguments arguments);
Result<int> checkpoint_gc(const CommandContext& context, StoreArguments arguments);
Result<int> checkpoint_status(const CommandContext& context, StoreArguments arguments);

// Prints an error that has an exit code of its own to stderr, as the main program would; on rank 0 only.
void report_failed(const CommandContext& context, const Error& error);

}  // namespace penstock
