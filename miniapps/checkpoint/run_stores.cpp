#include "miniapps/checkpoint/run_stores.hpp"

#include <fmt/format.h>

#include <optional>
#include <string_view>
#include <utility>

namespace penstock {
namespace {

constexpr std::string_view kWorks[] = {"save", "drain"};

Result<void> lock_all(CheckpointStore& store, const std::string& run, RunStores& stores) {
  for (const std::string_view what : kWorks) {
    PENSTOCK_ASSIGN(std::unique_ptr<Lock> lock, store.lock_run(run, what));
    stores.locks.push_back(std::move(lock));
  }
  return success();
}

// A slow tier that a run has drained to before must be there: else it is not mounted, most likely.
Result<std::unique_ptr<CheckpointStore>> open_paired(const std::string& run, const Tier& slow,
                                                     const Tier& fast, const std::string& before) {
  Result<std::unique_ptr<CheckpointStore>> opened = CheckpointStore::open(slow);
  if (!opened.ok() && opened.error().code != Errc::not_found) return opened.error();
  if (opened.ok() && (*opened)->facts().uuid == before) return opened;
  return make_error(Errc::invalid_argument,
                    fmt::format("run '{}' drains from '{}' to the store {}, which is not at '{}' ({}): mount "
                                "it there, or take another --run",
                                run, fast.name, before, slow.name, slow.root));
}

}  // namespace

Result<RunStores> take_run(const std::string& run, const Tier& slow, const Tier* fast) {
  PENSTOCK_TRY(check_run_name(run));
  RunStores stores;
  std::optional<std::string> before;
  if (fast != nullptr) {
    PENSTOCK_ASSIGN(stores.fast, CheckpointStore::open_or_make(*fast, StoreRole::fast));
    PENSTOCK_TRY(lock_all(*stores.fast, run, stores));
    PENSTOCK_ASSIGN(before, stores.fast->paired(run));
  }
  if (before) {
    PENSTOCK_ASSIGN(stores.slow, open_paired(run, slow, *fast, *before));
  } else {
    PENSTOCK_ASSIGN(stores.slow, CheckpointStore::open_or_make(slow, StoreRole::slow));
  }
  PENSTOCK_TRY(lock_all(*stores.slow, run, stores));
  if (fast != nullptr && !before) PENSTOCK_TRY(stores.fast->pair(run, *stores.slow));
  for (CheckpointStore* const store : {stores.slow.get(), stores.fast.get()}) {
    if (store == nullptr) continue;
    for (const std::string_view what : kWorks) {
      PENSTOCK_ASSIGN([[maybe_unused]] const std::uint64_t swept, store->sweep(run, what));
    }
  }
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
