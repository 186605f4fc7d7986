#include "miniapps/checkpoint_subcommands/stores.hpp"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "miniapps/checkpoint_subcommands/bench_runs.hpp"

namespace penstock {
namespace {

Result<void> check_distinct(const NamedStores& stores) {
  const std::vector<CheckpointStore*> all = stores.existing();
  for (size_t i = 0; i < all.size(); ++i)
    for (size_t j = 0; j < i; ++j)
      if (all[i]->uuid() == all[j]->uuid())
        return make_error(Errc::invalid_argument,
                          "'{}' and '{}' are the same checkpoint store: name each store once",
                          all[j]->tier().spec, all[i]->tier().spec);
  return success();
}

Error no_such_run(const std::string& run, const std::vector<std::string>& runs) {
  return make_error(Errc::not_found,
                    runs.empty()
                        ? fmt::format("these stores contain no checkpoint of run '{}' or any other run", run)
                        : fmt::format("these stores contain no checkpoint of run '{}', only of: {}", run,
                                      fmt::join(runs, ", ")));
}

}  // namespace

std::vector<CheckpointStore*> NamedStores::existing() const {
  std::vector<CheckpointStore*> all;
  for (const auto& store : opened)
    if (store) all.push_back(store.get());
  std::stable_partition(all.begin(), all.end(),
                        [](const CheckpointStore* store) { return store->role() == StoreRole::fast; });
  return all;
}

Result<std::vector<Tier>> open_store_tiers(std::span<const std::string> arguments, NamedTiers named) {
  std::vector<Tier> tiers;
  for (const std::string& argument : arguments) {
    PENSTOCK_ASSIGN(TierSpec spec, parse_tier(argument, named));
    if (spec.name.empty()) spec.name = spec.path;
    for (const Tier& other : tiers)
      if (other.name == spec.name)
        return make_error(
            Errc::invalid_argument,
            "two stores have the name '{}': name each store once, or set names, as in fast=/dev/shm/bb",
            spec.name);
    PENSTOCK_ASSIGN(Tier tier, open_tier(spec));
    tiers.push_back(std::move(tier));
  }
  return tiers;
}

Result<std::unique_ptr<CheckpointStore>> open_if_there(const Tier& tier) {
  Result<std::unique_ptr<CheckpointStore>> store = CheckpointStore::open(tier);
  if (!store.ok() && store.error().code == Errc::not_found) return std::unique_ptr<CheckpointStore>();
  return store;
}

Result<NamedStores> open_stores(const CommandContext& context, bool one_suffices) {
  NamedStores stores;
  PENSTOCK_ASSIGN(stores.tiers, open_store_tiers(context.positionals, context.named_tiers));
  std::vector<Error> absent;
  for (const Tier& tier : stores.tiers) {
    Result<std::unique_ptr<CheckpointStore>> store = CheckpointStore::open(tier);
    if (!store.ok() && store.error().code != Errc::not_found) return store.error();
    if (!store.ok()) absent.push_back(store.error());
    stores.opened.push_back(store.ok() ? *std::move(store) : nullptr);
  }
  if (!absent.empty() && (!one_suffices || absent.size() == stores.tiers.size())) return absent[0];
  for (const Error& error : absent) warn(error.message() + "; continuing without it");
  PENSTOCK_TRY(check_distinct(stores));
  return stores;
}

Result<std::vector<std::string>> runs_in(std::span<CheckpointStore* const> stores) {
  std::set<std::string> all;
  for (const CheckpointStore* store : stores) {
    PENSTOCK_ASSIGN(const std::vector<std::string> runs, store->runs());
    all.insert(runs.begin(), runs.end());
  }
  return std::vector<std::string>(all.begin(), all.end());
}

Result<std::vector<std::string>> wanted_runs(std::span<CheckpointStore* const> stores,
                                             const Options& options) {
  PENSTOCK_ASSIGN(std::vector<std::string> runs, runs_in(stores));
  if (!options.has("run")) return runs;
  const std::string& run = options.text("run");
  PENSTOCK_TRY(check_run_name(run));
  if (std::find(runs.begin(), runs.end(), run) == runs.end()) return no_such_run(run, runs);
  return std::vector<std::string>{run};
}

Result<std::string> one_run(std::span<CheckpointStore* const> stores, const Options& options) {
  PENSTOCK_ASSIGN(std::vector<std::string> runs, wanted_runs(stores, options));
  if (!options.has("run")) std::erase_if(runs, is_bench_run);
  if (runs.empty()) return make_error(Errc::not_found, "these stores contain no checkpoints");
  if (runs.size() > 1)
    return make_error(Errc::invalid_argument, "there are {} runs: choose one with --run NAME: {}",
                      runs.size(), fmt::join(runs, ", "));
  return runs[0];
}

std::string shown_name(const CheckpointStore& store) {
  const bool is_volatile = store.durability() == kVolatile;
  return printable(store.tier().name) + (is_volatile ? " (volatile)" : "");
}

}  // namespace penstock
