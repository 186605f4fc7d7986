// penstock checkpoint gc: removes what dead processes left and, with --keep, older checkpoints.
#include <fmt/format.h>

#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint/drain_progress.hpp"
#include "miniapps/checkpoint/found_checkpoints.hpp"
#include "miniapps/checkpoint/run_stores.hpp"
#include "miniapps/checkpoint_subcommands/bench_runs.hpp"
#include "miniapps/checkpoint_subcommands/checkpoint_options.hpp"
#include "miniapps/checkpoint_subcommands/stores.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"

namespace penstock {
namespace {

struct ClearedRun {
  std::string run;
  uint64_t swept = 0, pruned = 0, evicted = 0;
  std::string locked;  // who holds the run's lock; "" if the lock was free
};

// Adds to `runs` the run of each name "<run>.<purpose>.<uuid>" in the folder.
Result<void> add_runs(const CheckpointStore& store, std::string_view folder, std::set<std::string>& runs) {
  const Result<void> listed = store.tier().backend->names().list(folder, [&](const Entry& entry) {
    const std::string name = entry.name.substr(entry.name.rfind('/') + 1);
    const size_t before_uuid = name.rfind('.');
    const size_t before_purpose =
        before_uuid == 0 || before_uuid == std::string::npos ? before_uuid : name.rfind('.', before_uuid - 1);
    if (before_purpose != std::string::npos && check_run_name(name.substr(0, before_purpose)).ok())
      runs.insert(name.substr(0, before_purpose));
    return true;
  });
  return listed.ok() || listed.error().code == Errc::not_found ? success() : listed;
}

// Returns the runs with a pending checkpoint. Such a run may have no committed checkpoint yet.
Result<std::set<std::string>> runs_with_pending(std::span<CheckpointStore* const> stores) {
  std::set<std::string> runs;
  for (const CheckpointStore* store : stores)
    for (const std::string_view folder : {"tmp", "reserved"}) PENSTOCK_TRY(add_runs(*store, folder, runs));
  return runs;
}

Result<std::vector<std::string>> runs_to_clear(std::span<CheckpointStore* const> stores,
                                               const Options& options) {
  PENSTOCK_ASSIGN(std::set<std::string> runs, runs_with_pending(stores));
  if (options.has("run") && runs.contains(options.text("run")))
    return std::vector<std::string>{options.text("run")};
  PENSTOCK_ASSIGN(const std::vector<std::string> committed, wanted_runs(stores, options));
  if (options.has("run")) return committed;
  runs.insert(committed.begin(), committed.end());
  return std::vector<std::string>(runs.begin(), runs.end());
}

// Removes the checkpoints of the run that are older than the `keep` newest correct ones. Reads those newest
// ones completely, to prove that they are correct.
Result<uint64_t> prune(CheckpointStore& slow, const std::string& run, uint64_t keep) {
  PENSTOCK_ASSIGN(const std::vector<ListedCheckpoint> listed, list_checkpoints(slow, run));
  uint64_t verified_count = 0;
  uint64_t pruned = 0;
  for (auto each = listed.rbegin(); each != listed.rend(); ++each) {
    PENSTOCK_TRY(check_interrupt());
    if (!each->manifest.ok()) continue;  // not removed; `checkpoint verify` reports it
    if (verified_count >= keep) {
      PENSTOCK_TRY(slow.remove(run, each->id));
      ++pruned;
      continue;
    }
    const Result<void> verified = slow.verify(run, *each->manifest);
    if (verified.ok())
      ++verified_count;
    else if (is_data_error(verified.error().code) || verified.error().code == Errc::not_found)
      warn(verified.error().message());
    else
      return verified.error();
  }
  return pruned;
}

// Removes copies on the fast tier that the slow store also has, except the `to_keep` newest. Skips a
// checkpoint if its slow copy is not in the store that the run drains to. Verifies the slow copy before the
// removal.
Result<uint64_t> evict(std::span<CheckpointStore* const> stores, const std::string& run, uint64_t to_keep) {
  PENSTOCK_ASSIGN(const std::vector<FoundCheckpoint> all, find_checkpoints(stores, run));
  uint64_t evicted = 0;
  for (auto found = all.rbegin(); found != all.rend(); ++found) {
    const ListedCheckpoint* const fast = found->valid_copy_in(StoreRole::fast);
    const ListedCheckpoint* const slow = found->valid_copy_in(StoreRole::slow);
    if (fast == nullptr || slow == nullptr || !same_content(*fast->manifest, *slow->manifest)) continue;
    PENSTOCK_ASSIGN(const std::optional<std::string> slow_uuid, fast->store->recorded_slow_store(run));
    if (slow_uuid && *slow_uuid != slow->store->uuid()) continue;
    if (to_keep > 0) {
      --to_keep;
      continue;
    }
    PENSTOCK_TRY(check_interrupt());
    // So far only the manifest was checked; the bytes of the files may be wrong.
    if (const Result<void> verified = slow->store->verify(run, *slow->manifest); !verified.ok()) {
      if (!is_data_error(verified.error().code)) return verified.error();
      warn(fmt::format("{}; the copy on '{}' stays; to copy it again: {}", verified.error().message(),
                       fast->store->tier().name,
                       drain_command(fast->store->tier(), slow->store->tier(), run)));
      continue;
    }
    PENSTOCK_TRY(fast->store->remove(run, found->id));
    ++evicted;
  }
  return evicted;
}

Result<ClearedRun> clear(std::span<CheckpointStore* const> stores, const std::string& run,
                         const Options& options) {
  ClearedRun cleared{.run = run, .locked = ""};
  std::vector<std::unique_ptr<Lock>> locks;
  for (CheckpointStore* store : stores) {
    const Result<void> locked = take_run_locks(*store, run, locks);
    if (!locked.ok() && locked.error().code == Errc::busy && !options.has("run")) {
      cleared.locked = locked.error().message();
      return cleared;
    }
    PENSTOCK_TRY(locked);
  }
  for (CheckpointStore* store : stores) {
    PENSTOCK_ASSIGN(const uint64_t swept, sweep_run(*store, run));
    cleared.swept += swept;
    if (!options.given("keep") || store->role() != StoreRole::slow) continue;
    PENSTOCK_ASSIGN(const uint64_t pruned, prune(*store, run, uint64_t(options.integer("keep"))));
    cleared.pruned += pruned;
  }
  if (options.given("keep-fast")) {
    PENSTOCK_ASSIGN(cleared.evicted, evict(stores, run, uint64_t(options.integer("keep-fast"))));
  }
  return cleared;
}

Result<int> run_gc(const CommandContext& context) {
  PENSTOCK_ASSIGN(const NamedStores stores, open_stores(context, false));
  const std::vector<CheckpointStore*> existing = stores.existing();
  for (CheckpointStore* store : existing) {
    PENSTOCK_ASSIGN(const bool removed_any, store->remove_ceiling_leftovers());
    if (removed_any)
      note(fmt::format("removed the files that a killed ceiling measurement left on '{}'",
                       store->tier().name));
    if (context.options.has("run")) continue;
    PENSTOCK_ASSIGN(const uint64_t runs, sweep_bench_runs(*store));
    if (runs > 0)
      note(fmt::format("removed {} that a killed bench left in '{}'",
                       runs == 1 ? "the run" : format_count(runs) + " runs", store->tier().name));
  }
  PENSTOCK_ASSIGN(const std::vector<std::string> runs, runs_to_clear(existing, context.options));
  Table table({{"run", Align::left}, {"swept"}, {"pruned"}, {"evicted"}, {"", Align::left}});
  for (const std::string& run : runs) {
    PENSTOCK_TRY(check_interrupt());
    PENSTOCK_ASSIGN(const ClearedRun cleared, clear(existing, run, context.options));
    if (context.output.json)
      print_json({{"kind", "gc"},
                  {"run", run},
                  {"swept", cleared.swept},
                  {"pruned", cleared.pruned},
                  {"evicted", cleared.evicted},
                  {"locked", cleared.locked}});
    table.row({run, format_count(cleared.swept, context.output), format_count(cleared.pruned, context.output),
               format_count(cleared.evicted, context.output),
               cleared.locked.empty() ? "" : "unchanged: " + printable(cleared.locked)});
  }
  if (!context.output.json) print_text(table.empty() ? "no runs\n" : table.text());
  return 0;
}

constexpr OptionSpec kGcOptions[] = {
    kRunOption,
    keep_option("number of durable checkpoints of each run to keep, including the newest (default: all)"),
    keep_fast_option("number of durable checkpoints to keep on the fast tier as well (default: all)"),
};

}  // namespace

extern const CommandInfo checkpoint_gc;
const CommandInfo checkpoint_gc{
    .name = "checkpoint gc",
    .summary = "remove leftovers of killed saves, and old checkpoints",
    .options = kGcOptions,
    .run = &with_locks<run_gc>,
    .synopsis = "penstock checkpoint gc STORE... [--run NAME] [--keep N] [--keep-fast N]",
    .examples = {"penstock checkpoint gc /dev/shm/bb /pfs/ckpt --keep 3   # keeps the newest three durable "
                 "ones of each run"},
    .arguments = "STORE...",
    .has_placement = true,
};

}  // namespace penstock
