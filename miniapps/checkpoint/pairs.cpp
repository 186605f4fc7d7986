// Records in the fast store to which slow store a run drains. forget_run() removes this record, the run's
// empty folder in ckpt/ and its lock files.
#include <optional>
#include <string>

#include "miniapps/checkpoint/store.hpp"

namespace penstock {
namespace {

constexpr std::string_view kPairs = "pairs";
constexpr uint64_t kMostPairBytes = 100;

}  // namespace

Result<std::optional<std::string>> CheckpointStore::recorded_slow_store(std::string_view run) const {
  PENSTOCK_TRY(check_run_name(run));
  Result<std::string> text = files_.read_text(path_in(kPairs, run), kMostPairBytes);
  if (!text.ok() && text.error().code == Errc::not_found) return std::optional<std::string>();
  PENSTOCK_ASSIGN(std::string uuid, std::move(text));
  while (uuid.ends_with('\n')) uuid.pop_back();
  return std::optional<std::string>(std::move(uuid));
}

Result<void> CheckpointStore::record_slow_store(std::string_view run, const CheckpointStore& slow) {
  PENSTOCK_TRY(check_run_name(run));
  return files_.write_text(path_in(kPairs, run), slow.uuid() + "\n", Durability::file_and_name,
                           IfExists::fail);
}

Result<void> CheckpointStore::forget_run(std::string_view run) {
  PENSTOCK_TRY(check_run_name(run));
  PENSTOCK_TRY(still_there());
  for (const std::string& name :
       {path_in(kStoreCommitted, run), path_in(kPairs, run), path_in(kStoreLocks, std::string(run) + ".save"),
        path_in(kStoreLocks, std::string(run) + ".drain")}) {
    const Result<void> removed = files_.backend().names().remove(name);
    if (!removed.ok() && removed.error().code != Errc::not_found) return files_.named(removed.error());
  }
  return success();
}

}  // namespace penstock
