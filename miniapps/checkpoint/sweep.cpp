// What processes that are no more left in a store.
#include <algorithm>
#include <chrono>
#include <filesystem>
#include <system_error>

#include "miniapps/checkpoint/store.hpp"

namespace penstock {
namespace {

// A measurement holds no lock, and one of its files may be in the writing for that long, unseen.
constexpr std::chrono::hours kCeilingIsDead{1};

// Of the folder and what is in it; nothing where it is not there, or this machine cannot say.
std::optional<std::filesystem::file_time_type> last_change(const std::filesystem::path& folder) {
  std::error_code failure;
  auto newest = std::filesystem::last_write_time(folder, failure);
  if (failure) return {};
  std::filesystem::directory_iterator entry(folder, failure);
  for (; !failure && entry != std::filesystem::directory_iterator(); entry.increment(failure)) {
    std::error_code gone;
    const auto changed = entry->last_write_time(gone);
    if (!gone) newest = std::max(newest, changed);
  }
  if (failure) return {};
  return newest;
}

// What a process that was killed has renamed, into ckpt/ or out of it, may not be on the disk yet: nothing is
// acknowledged or removed on the strength of it before.
Result<void> sync_committed(const StoreFiles& files) {
  PENSTOCK_ASSIGN(const std::vector<Entry> runs, files.list_if_there(kStoreCommitted));
  for (const Entry& run : runs)
    if (run.folder && !run.link) PENSTOCK_TRY(files.sync_dir(run.name));
  return runs.empty() ? success() : files.sync_dir(kStoreCommitted);
}

}  // namespace

Result<std::uint64_t> CheckpointStore::sweep(std::string_view run, std::string_view what) {
  PENSTOCK_TRY(check_run_name(run));
  PENSTOCK_TRY(check_what(what));
  PENSTOCK_TRY(still_there());
  std::uint64_t swept = 0;
  for (const std::string_view folder : {kStoreReserved, kStoreTaken, kStoreTmp, kStoreTrash}) {
    PENSTOCK_ASSIGN(const std::vector<Entry> entries, files_.list_if_there(folder));
    if (folder == kStoreTrash) PENSTOCK_TRY(sync_committed(files_));
    for (const Entry& entry : entries) {
      std::string_view name = last_part(entry.name);
      if (folder == kStoreTaken) name = name.substr(0, name.rfind('.'));
      if (folder != kStoreTrash && !is_making(name, run, what)) continue;
      PENSTOCK_TRY(files_.remove_tree(entry));
      if (folder == kStoreTmp || folder == kStoreTrash) ++swept;
    }
  }
  PENSTOCK_ASSIGN(const bool ceiling, sweep_ceiling());
  return swept + (ceiling ? 1 : 0);
}

Result<bool> CheckpointStore::sweep_ceiling() {
  const auto path = files_.backend().native_path(kCeilingFolder);
  const auto changed = path ? last_change(*path) : std::nullopt;
  if (!changed || std::filesystem::file_time_type::clock::now() - *changed < kCeilingIsDead) return false;
  PENSTOCK_TRY(still_there());
  PENSTOCK_TRY(files_.remove_tree(kCeilingFolder));
  return true;
}

}  // namespace penstock
