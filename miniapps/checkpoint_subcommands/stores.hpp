// Opens the stores that the command line of a subcommand names, and chooses the runs in them.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/checkpoint/store.hpp"

namespace penstock {

// The tiers and stores that a command names. Moving the object does not move the stores, so pointers to them
// stay valid.
struct NamedStores {
  std::vector<Tier> tiers;
  std::vector<std::unique_ptr<CheckpointStore>> opened;  // one for each tier; null: the tier has no store

  std::vector<CheckpointStore*> existing() const;  // the stores that exist, fast ones first
};

// Opens the tiers of the arguments. A tier without a name gets its path as the name, not its mount point as
// elsewhere: stores often share a mount. invalid_argument if two have the same name.
Result<std::vector<Tier>> open_store_tiers(std::span<const std::string> arguments, NamedTiers named);

// Opens the store of a tier; null if there is none.
Result<std::unique_ptr<CheckpointStore>> open_if_there(const Tier& tier);

// Opens the store of each argument of the command. A missing store is not_found; with `one_suffices` it is
// only a warning if another store exists. The same store under two names is invalid_argument.
Result<NamedStores> open_stores(const CommandContext& context, bool one_suffices);

// Returns the names of the runs that have a checkpoint in any of the stores, in alphabetical order.
Result<std::vector<std::string>> runs_in(std::span<CheckpointStore* const> stores);

// Returns the run of --run or, without it, the only run that exists; runs of `bench` do not count.
// invalid_argument if there are several (the error lists them); not_found if there is none, or if the run of
// --run does not exist.
Result<std::string> one_run(std::span<CheckpointStore* const> stores, const Options& options);
// Returns the run of --run or, without it, all runs. not_found if the run of --run does not exist.
Result<std::vector<std::string>> wanted_runs(std::span<CheckpointStore* const> stores,
                                             const Options& options);

// The name of the store's tier for tables: "fast (volatile)".
std::string shown_name(const CheckpointStore& store);

}  // namespace penstock
