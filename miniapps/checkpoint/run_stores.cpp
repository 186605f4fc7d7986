// Threads: one thread of rank 0 calls open_and_lock_run(); one thread of each other rank calls open_run().
// Locks: they are files, and taken without waiting. The order is the fast store, then the slow one; in each
// store "save", then "drain". RunStores holds them until it is destroyed.
// Memory: everything allocates. An exception releases the locks.
// Ctrl-C: not checked in this file.
// Crash: the locks end with the process. The next open_and_lock_run() removes what the dead process left
// (sweep()).
#include "miniapps/checkpoint/run_stores.hpp"

#include <optional>
#include <utility>

#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {
namespace {

// Opens the slow store that the run drained to before. invalid_argument if it is not there: its tier is
// probably not mounted.
Result<std::unique_ptr<CheckpointStore>> open_paired(const std::string& run, const Tier& slow,
                                                     const Tier& fast, const std::string& recorded_uuid) {
  Result<std::unique_ptr<CheckpointStore>> opened = CheckpointStore::open(slow);
  if (!opened.ok() && opened.error().code != Errc::not_found) return opened.error();
  if (opened.ok() && (*opened)->uuid() == recorded_uuid) return opened;
  return make_error(Errc::invalid_argument,
                    "run '{}' drains from '{}' to the store {}, which is not at '{}' ({}): mount it there, "
                    "or choose another --run",
                    run, fast.name, recorded_uuid, slow.name, slow.root);
}

}  // namespace

Result<void> take_run_locks(CheckpointStore& store, const std::string& run,
                            std::vector<std::unique_ptr<Lock>>& locks) {
  for (const std::string_view purpose : kRunPurposes) {
    PENSTOCK_ASSIGN(std::unique_ptr<Lock> lock, store.lock_run(run, purpose));
    locks.push_back(std::move(lock));
  }
  return success();
}

Result<uint64_t> sweep_run(CheckpointStore& store, const std::string& run) {
  uint64_t swept = 0;
  for (const std::string_view purpose : kRunPurposes) {
    PENSTOCK_ASSIGN(const uint64_t removed, store.sweep(run, purpose));
    swept += removed;
  }
  return swept;
}

Result<RunStores> open_and_lock_run(const std::string& run, const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(check_run_name(run));
  RunStores stores;
  std::optional<std::string> recorded_uuid;
  if (fast != nullptr) {
    PENSTOCK_ASSIGN(stores.fast, CheckpointStore::open_or_make(*fast, StoreRole::fast));
    PENSTOCK_TRY(take_run_locks(*stores.fast, run, stores.locks));
    PENSTOCK_ASSIGN(recorded_uuid, stores.fast->recorded_slow_store(run));
  }
  if (recorded_uuid) {
    PENSTOCK_ASSIGN(stores.slow, open_paired(run, slow, *fast, *recorded_uuid));
  } else {
    PENSTOCK_ASSIGN(stores.slow, CheckpointStore::open_or_make(slow, StoreRole::slow));
  }
  PENSTOCK_TRY(take_run_locks(*stores.slow, run, stores.locks));
  if (fast != nullptr && !recorded_uuid) PENSTOCK_TRY(stores.fast->record_slow_store(run, *stores.slow));
  PENSTOCK_TRY(outcome_of(sweep_run(*stores.slow, run)));
  if (fast != nullptr) PENSTOCK_TRY(outcome_of(sweep_run(*stores.fast, run)));
  return stores;
}

Result<RunStores> open_run(const Tier& slow, const Tier* fast) {
  RunStores stores;
  PENSTOCK_ASSIGN(stores.slow, CheckpointStore::open(slow));
  if (fast != nullptr) {
    PENSTOCK_ASSIGN(stores.fast, CheckpointStore::open(*fast));
  }
  return stores;
}

}  // namespace penstock
