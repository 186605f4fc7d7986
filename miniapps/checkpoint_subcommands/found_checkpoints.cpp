#include "miniapps/checkpoint_subcommands/found_checkpoints.hpp"

#include <map>
#include <utility>

namespace penstock {

const FoundCopy* FoundCheckpoint::in(StoreRole role) const {
  for (const FoundCopy& copy : copies)
    if (copy.store->facts().role == role && copy.manifest.ok()) return &copy;
  return nullptr;
}

bool FoundCheckpoint::durable() const {
  return in(StoreRole::slow) != nullptr;
}

const CheckpointManifest* FoundCheckpoint::manifest() const {
  for (const FoundCopy& copy : copies)
    if (copy.manifest.ok()) return &*copy.manifest;
  return nullptr;
}

Result<std::vector<FoundCheckpoint>> find_checkpoints(std::span<CheckpointStore* const> stores,
                                                      std::string_view run) {
  std::map<CheckpointId, FoundCheckpoint> all;
  for (CheckpointStore* store : stores) {
    PENSTOCK_ASSIGN(std::vector<Listed> listed, store->list(run));
    for (Listed& each : listed) {
      FoundCheckpoint& found = all[each.id];
      found.run = each.run;
      found.id = each.id;
      found.copies.push_back({store, std::move(each.manifest)});
    }
  }
  std::vector<FoundCheckpoint> found;
  for (auto& [id, each] : all) found.push_back(std::move(each));
  return found;
}

bool same_content(const CheckpointManifest& one, const CheckpointManifest& other) {
  return one.run == other.run && one.id == other.id && one.ranks == other.ranks && one.files == other.files;
}

}  // namespace penstock
