// What the subcommands of `penstock checkpoint` share: the stores that a line names and the runs in them,
// exit codes, and how they end. Each is in a file of its name, gets the line's STOREs in order, and returns
// the exit code. The main program handles an Error, except `busy`, which ends the command with kLocked.
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

// What restore writes next to the restored files.
inline constexpr std::string_view kRestartName = "restart.json";

// Moving it leaves the stores where they are.
struct NamedStores {
  std::vector<Tier> tiers;
  std::vector<std::unique_ptr<CheckpointStore>> opened;  // as tiers; null: there is none at that place

  std::vector<CheckpointStore*> there() const;  // fast ones first
};

// The tiers, each by the name that it was given, else by its path as written: stores often share a mount.
// invalid_argument where two have one name.
Result<std::vector<Tier>> open_store_tiers(std::span<const std::string> arguments, NamedTiers named);

// Opens the store of a tier; null where there is none.
Result<std::unique_ptr<CheckpointStore>> open_if_there(const Tier& tier);

// Opens each STORE of the line. A place without a store is not_found, or where `some_suffice`, a warning as
// long as another one is there. The same store by two names is invalid_argument.
Result<NamedStores> open_stores(const CommandContext& context, bool some_suffice);

// The names of the runs that have a checkpoint in any of them, by name.
Result<std::vector<std::string>> runs_in(std::span<CheckpointStore* const> stores);

// --run, or the only run there is, those of `bench` not counted; invalid_argument where there are several,
// and lists them. not_found where there is none, or not that one.
Result<std::string> one_run(std::span<CheckpointStore* const> stores, const Options& options);
// --run, or all; not_found where --run is not there.
Result<std::vector<std::string>> wanted_runs(std::span<CheckpointStore* const> stores,
                                             const Options& options);

// "120.0": a step and its generation.
std::string short_name(const CheckpointId& id);
// The store's tier, as tables name it: "fast (volatile)".
std::string shown_name(const CheckpointStore& store);

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
