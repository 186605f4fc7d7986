// Removes from a store what dead processes left.
//
// Threads: any thread may call these functions.
// Locks: the caller of sweep() holds the run's lock for `purpose`. remove_ceiling_leftovers() needs none,
// because it removes only files that did not change for an hour.
// Memory: names and entries allocate.
// Ctrl-C: not checked.
// Crash: ckpt/ is synced before anything in trash/ is unlinked. Otherwise a power cut could bring back a name
// in ckpt/ whose files are lost. If sweep() is interrupted, its next call removes the rest.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "miniapps/checkpoint/store.hpp"

namespace penstock {
namespace {

// A ceiling measurement holds no lock, so only the age of its files shows that its process is dead. A live
// process may write a file for up to this long without a visible change.
constexpr std::chrono::hours kDeadCeilingAge{1};

// The latest change of the folder or of an entry in it; nothing if the folder does not exist or the time
// cannot be read.
std::optional<std::filesystem::file_time_type> last_change(const std::filesystem::path& folder) {
  std::error_code failure;
  auto newest = std::filesystem::last_write_time(folder, failure);
  if (failure) return {};
  std::filesystem::directory_iterator entry(folder, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    std::error_code entry_failure;
    const auto changed = entry->last_write_time(entry_failure);
    if (!entry_failure) newest = std::max(newest, changed);
  }
  if (failure) return {};
  return newest;
}

// Syncs ckpt/ and the folders of the runs in it. A killed process may have renamed a checkpoint into ckpt/ or
// out of it without syncing. So sync_committed() runs before anything is acknowledged or removed because of
// such a name.
Result<void> sync_committed(const StoreFiles& files) {
  PENSTOCK_ASSIGN(const std::vector<Entry> runs, files.list_if_there(kStoreCommitted));
  for (const Entry& run : runs)
    if (run.folder && !run.link) PENSTOCK_TRY(files.sync_dir(run.name));
  return runs.empty() ? success() : files.sync_dir(kStoreCommitted);
}

}  // namespace

Result<uint64_t> CheckpointStore::sweep(std::string_view run, std::string_view purpose) {
  PENSTOCK_TRY(check_run_name(run));
  PENSTOCK_TRY(check_purpose(purpose));
  PENSTOCK_TRY(still_there());
  uint64_t swept = 0;
  for (const std::string_view folder : {kStoreReserved, kStoreTaken, kStoreTmp, kStoreTrash}) {
    PENSTOCK_ASSIGN(const std::vector<Entry> entries, files_.list_if_there(folder));
    if (folder == kStoreTrash) PENSTOCK_TRY(sync_committed(files_));
    for (const Entry& entry : entries) {
      std::string_view name = last_part(entry.name);
      if (folder == kStoreTaken) name = name.substr(0, name.rfind('.'));
      if (folder != kStoreTrash && !is_pending_name(name, run, purpose)) continue;
      PENSTOCK_TRY(files_.remove_tree(entry));
      if (folder == kStoreTmp || folder == kStoreTrash) ++swept;
    }
  }
  PENSTOCK_ASSIGN(const bool removed_ceiling, remove_ceiling_leftovers());
  return swept + (removed_ceiling ? 1 : 0);
}

Result<bool> CheckpointStore::remove_ceiling_leftovers() {
  const auto path = files_.backend().native_path(kCeilingFolder);
  const auto changed = path ? last_change(*path) : std::nullopt;
  if (!changed || std::filesystem::file_time_type::clock::now() - *changed < kDeadCeilingAge) return false;
  PENSTOCK_TRY(still_there());
  PENSTOCK_TRY(files_.remove_tree(kCeilingFolder));
  return true;
}

}  // namespace penstock
