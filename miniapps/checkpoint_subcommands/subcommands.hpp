// Shared by the subcommands of `penstock checkpoint`: opens the stores that the command line names, chooses
// runs, and defines exit codes. Each subcommand is in a file of its own name, gets the STOREs in the order of
// the command line, and returns the exit code. The main program handles an Error, except `busy`, which ends
// the command with kLocked.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/saves.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// Exit codes of the command in addition to 0, 1, 2 and 77.
inline constexpr int kNotDurable = 3;
inline constexpr int kNothingRestorable = 4;
inline constexpr int kLocked = 5;

// The file that restore writes next to the restored files.
inline constexpr std::string_view kRestartName = "restart.json";

// Moving the object does not move the stores, so pointers to them stay valid.
struct NamedStores {
  std::vector<Tier> tiers;
  std::vector<std::unique_ptr<CheckpointStore>> opened;  // one for each tier; null: the tier has no store

  std::vector<CheckpointStore*> there() const;  // the stores that exist, fast ones first
};

// Opens the tiers. A tier without a name gets its path as the name, since stores often share a mount.
// invalid_argument if two have the same name.
Result<std::vector<Tier>> open_store_tiers(std::span<const std::string> arguments, NamedTiers named);

// Opens the store of a tier; null if there is none.
Result<std::unique_ptr<CheckpointStore>> open_if_there(const Tier& tier);

// Opens the store of each argument of the command. A missing store is not_found; with `some_suffice` it is
// only a warning if another store exists. The same store under two names is invalid_argument.
Result<NamedStores> open_stores(const CommandContext& context, bool some_suffice);

// The names of the runs that have a checkpoint in any of the stores, in alphabetical order.
Result<std::vector<std::string>> runs_in(std::span<CheckpointStore* const> stores);

// The run of --run, or the only run that exists; runs of `bench` do not count. invalid_argument if there are
// several (the error lists them); not_found if there is none, or not the one of --run.
Result<std::string> one_run(std::span<CheckpointStore* const> stores, const Options& options);
// The run of --run, or all runs. not_found if the run of --run does not exist.
Result<std::vector<std::string>> wanted_runs(std::span<CheckpointStore* const> stores,
                                             const Options& options);

// Text such as "120.0": a step and its generation.
std::string short_name(const CheckpointId& id);
// The name of the store's tier for tables: "fast (volatile)".
std::string shown_name(const CheckpointStore& store);

// The policy from --keep, --keep-fast, --on-full, --on-full-timeout, --oversize, --headroom and --read-back.
// Without one of the first two, the default of CheckpointPolicy applies.
CheckpointPolicy policy_of(const Options& options);

// Prints an error that has its own exit code to stderr, in the form of the main program. Rank 0 only.
void report_failed(const CommandContext& context, const Error& error);

// The CommandInfo::run of a subcommand that takes locks.
template <Result<int> (*work)(const CommandContext& context)>
Result<int> with_locks(const CommandContext& context) {
  Result<int> result = work(context);
  if (result.ok() || result.error().code != Errc::busy) return result;
  report_failed(context, result.error());
  return kLocked;
}

}  // namespace penstock
