#include "miniapps/checkpoint/found_checkpoints.hpp"

#include <algorithm>
#include <iterator>
#include <map>
#include <utility>

namespace penstock {

const Listed* FoundCheckpoint::in(StoreRole role) const {
  for (const Listed& copy : copies)
    if (copy.store->role() == role && copy.manifest.ok()) return &copy;
  return nullptr;
}

bool FoundCheckpoint::durable() const {
  return in(StoreRole::slow) != nullptr;
}

const CheckpointManifest* FoundCheckpoint::manifest() const {
  for (const Listed& copy : copies)
    if (copy.manifest.ok()) return &*copy.manifest;
  return nullptr;
}

Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::string_view run) {
  std::map<CheckpointId, FoundCheckpoint> all;
  for (const StoreRole role : {StoreRole::fast, StoreRole::slow}) {
    for (CheckpointStore* store : stores) {
      if (store->role() != role) continue;
      PENSTOCK_ASSIGN(std::vector<Listed> listed, store->list(run));
      for (Listed& each : listed) {
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
