// Threads: one thread of rank 0 calls take_run(); one thread of each other rank calls see_run().
// Locks: files, taken without waiting. The order is the fast store, then the slow one; in each store "save",
// then "drain". RunStores holds them until it is destroyed.
// Memory: everything allocates. An exception releases the locks.
// Ctrl-C: not checked in this file.
// Crash: the locks end with the process. The next take_run() removes what it left (sweep()).
#include "miniapps/checkpoint/run_stores.hpp"

#include <fmt/format.h>

#include <optional>
#include <utility>

#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {
namespace {

// The slow store that the run drained to before must exist: if it does not, its tier is probably not mounted.
Result<std::unique_ptr<CheckpointStore>> open_paired(const std::string& run, const Tier& slow,
                                                     const Tier& fast, const std::string& before) {
  Result<std::unique_ptr<CheckpointStore>> opened = CheckpointStore::open(slow);
  if (!opened.ok() && opened.error().code != Errc::not_found) return opened.error();
  if (opened.ok() && (*opened)->uuid() == before) return opened;
  return make_error(Errc::invalid_argument,
                    fmt::format("run '{}' drains from '{}' to the store {}, which is not at '{}' ({}): mount "
                                "it there, or take another --run",
                                run, fast.name, before, slow.name, slow.root));
}

}  // namespace

Result<void> take_run_locks(CheckpointStore& store, const std::string& run,
                            std::vector<std::unique_ptr<Lock>>& locks) {
  for (const std::string_view work : kRunPurposes) {
    PENSTOCK_ASSIGN(std::unique_ptr<Lock> lock, store.lock_run(run, work));
    locks.push_back(std::move(lock));
  }
  return success();
}

Result<std::uint64_t> sweep_run(CheckpointStore& store, const std::string& run) {
  std::uint64_t swept = 0;
  for (const std::string_view work : kRunPurposes) {
    PENSTOCK_ASSIGN(const std::uint64_t of_work, store.sweep(run, work));
    swept += of_work;
  }
  return swept;
}

Result<RunStores> take_run(const std::string& run, const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(check_run_name(run));
  RunStores stores;
  std::optional<std::string> before;
  if (fast != nullptr) {
    PENSTOCK_ASSIGN(stores.fast, CheckpointStore::open_or_make(*fast, StoreRole::fast));
    PENSTOCK_TRY(take_run_locks(*stores.fast, run, stores.locks));
    PENSTOCK_ASSIGN(before, stores.fast->recorded_slow_store(run));
  }
  if (before) {
    PENSTOCK_ASSIGN(stores.slow, open_paired(run, slow, *fast, *before));
  } else {
    PENSTOCK_ASSIGN(stores.slow, CheckpointStore::open_or_make(slow, StoreRole::slow));
  }
  PENSTOCK_TRY(take_run_locks(*stores.slow, run, stores.locks));
  if (fast != nullptr && !before) PENSTOCK_TRY(stores.fast->record_slow_store(run, *stores.slow));
  PENSTOCK_TRY(outcome_of(sweep_run(*stores.slow, run)));
  if (fast != nullptr) PENSTOCK_TRY(outcome_of(sweep_run(*stores.fast, run)));
  return stores;
}

Result<RunStores> see_run(const Tier& slow, const Tier* fast) {
  RunStores stores;
  PENSTOCK_ASSIGN(stores.slow, CheckpointStore::open(slow));
  if (fast != nullptr) {
    PENSTOCK_ASSIGN(stores.fast, CheckpointStore::open(*fast));
  }
  return stores;
}

}  // namespace penstock
