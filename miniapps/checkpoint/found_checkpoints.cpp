#include "miniapps/checkpoint/found_checkpoints.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

#include "miniapps/checkpoint/quarantine.hpp"

namespace penstock {

Result<std::vector<ListedCheckpoint>> list_checkpoints(const CheckpointStore& store, std::string_view run) {
  PENSTOCK_TRY(check_run_name(run));
  const StoreFiles& files = store.files();
  PENSTOCK_ASSIGN(const std::vector<Entry> entries, files.list_if_there(path_in(kStoreCommitted, run)));
  // An unmounted tier has an empty folder too; that must be an error, not an empty list.
  if (entries.empty()) PENSTOCK_TRY(store.still_there());
  std::vector<ListedCheckpoint> listed;
  for (const Entry& entry : entries) {
    const auto id = parse_checkpoint_folder(last_part(entry.name));
    if (!id) continue;
    if (!entry.folder || entry.link) {
      listed.push_back({*id, files.error(Errc::corrupt, fmt::format("'{}' is not a folder", entry.name))});
      continue;
    }
    auto manifest = store.manifest(run, *id);
    if (!manifest && manifest.error().code == Errc::not_found) continue;  // another process has removed it
    listed.push_back({*id, std::move(manifest)});
  }
  std::sort(listed.begin(), listed.end(),
            [](const ListedCheckpoint& a, const ListedCheckpoint& b) { return a.id < b.id; });
  return listed;
}

Result<uint64_t> sort_fast_checkpoints(CheckpointStore& fast, CheckpointStore& slow, std::string_view run,
                                       std::deque<CheckpointManifest>& durable,
                                       std::deque<CheckpointManifest>& pending) {
  uint64_t quarantined = 0;
  PENSTOCK_ASSIGN(std::vector<ListedCheckpoint> found, list_checkpoints(fast, run));
  for (ListedCheckpoint& one : found) {
    if (!one.manifest.ok()) {
      const Error& error = one.manifest.error();
      if (error.code == Errc::unsupported) continue;  // written by another version: it stays as it is
      PENSTOCK_ASSIGN(const bool moved, quarantine_if_wrong(fast, run, one.id, error));
      if (!moved) return error;
      ++quarantined;
      continue;
    }
    const Result<CheckpointManifest> copy = slow.manifest(run, one.id);
    const bool same = copy.ok() && copy->files == one.manifest->files;
    if (!copy.ok() && copy.error().code != Errc::not_found && !is_data_error(copy.error().code))
      return copy.error();
    (same ? durable : pending).push_back(*std::move(one.manifest));
  }
  return quarantined;
}

const ListedCheckpoint* FoundCheckpoint::valid_copy_in(StoreRole role) const {
  for (const ListedCheckpoint& copy : copies)
    if (copy.store->role() == role && copy.manifest.ok()) return &copy;
  return nullptr;
}

bool FoundCheckpoint::is_durable() const {
  return valid_copy_in(StoreRole::slow) != nullptr;
}

const CheckpointManifest* FoundCheckpoint::manifest() const {
  for (const ListedCheckpoint& copy : copies)
    if (copy.manifest.ok()) return &*copy.manifest;
  return nullptr;
}

Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::string_view run) {
  std::map<CheckpointId, FoundCheckpoint> all;
  for (const StoreRole role : {StoreRole::fast, StoreRole::slow}) {
    for (CheckpointStore* store : stores) {
      if (store->role() != role) continue;
      PENSTOCK_ASSIGN(std::vector<ListedCheckpoint> listed, list_checkpoints(*store, run));
      for (ListedCheckpoint& each : listed) {
        FoundCheckpoint& found = all[each.id];
        found.run = run;
        found.id = each.id;
        each.store = store;
        found.copies.push_back(std::move(each));
      }
    }
  }
  std::vector<FoundCheckpoint> found;
  for (auto& [id, each] : all) found.push_back(std::move(each));
  return found;
}

Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::span<const std::string> runs) {
  std::vector<FoundCheckpoint> all;
  for (const std::string& run : runs) {
    PENSTOCK_ASSIGN(std::vector<FoundCheckpoint> found, find_checkpoints(stores, run));
    std::move(found.begin(), found.end(), std::back_inserter(all));
  }
  return all;
}

bool same_content(const CheckpointManifest& one, const CheckpointManifest& other) {
  return one.run == other.run && one.id == other.id && one.ranks == other.ranks && one.files == other.files;
}

}  // namespace penstock
