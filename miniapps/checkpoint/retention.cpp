// Threads: any thread may call prune_checkpoints(): the drainer's thread does, and a thread that commits.
// Lock: prune_mutex, held during the whole call with its I/O. So another thread that prunes waits for it.
// Memory: the list of checkpoints allocates, with the lock held. An exception releases the lock.
// Ctrl-C: checked only while the newest checkpoint is read (`keep` = 1). Then nothing is removed.
// Crash: CheckpointStore::remove() first renames a checkpoint into trash/ and syncs the folder that it was
// in. So each checkpoint in ckpt/ is complete.
#include "miniapps/checkpoint/retention.hpp"

#include <algorithm>
#include <mutex>
#include <utility>
#include <vector>

#include "miniapps/checkpoint/found_checkpoints.hpp"

namespace penstock {

Result<uint64_t> prune_checkpoints(CheckpointStore& store, std::string_view run, uint64_t keep,
                                   const std::optional<CheckpointId>& saved) {
  // Two threads may prune at the same time (the drainer's thread and one that commits), so the second waits
  // for the first. The mutex is held also during reads and removals.
  static std::mutex prune_mutex;
  const std::lock_guard lock(prune_mutex);
  if (keep == 0) return make_error(Errc::invalid_argument, "--keep must be at least 1");
  PENSTOCK_ASSIGN(std::vector<ListedCheckpoint> found, list_checkpoints(store, run));
  std::erase_if(found, [](const ListedCheckpoint& one) { return !one.manifest.ok(); });
  if (found.size() <= keep) return uint64_t{0};
  if (keep == 1) PENSTOCK_TRY(store.verify(run, *found.back().manifest));
  uint64_t removed_count = 0;
  for (uint64_t i = 0; i < found.size() - keep; ++i) {
    if (saved && found[i].id >= *saved) break;
    const Result<void> removed = store.remove(run, found[i].id);
    if (!removed.ok() && removed.error().code != Errc::not_found) return removed.error();
    if (removed.ok()) ++removed_count;
  }
  return removed_count;
}

}  // namespace penstock
