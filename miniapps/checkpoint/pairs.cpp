// Records which slow store a run of a fast store drains to, and removes that record with the rest of a run.
#include <optional>
#include <string>

#include "miniapps/checkpoint/store.hpp"

namespace penstock {
namespace {

constexpr std::string_view kPairs = "pairs";
constexpr std::uint64_t kLongest = 100;

}  // namespace

Result<std::optional<std::string>> CheckpointStore::recorded_slow_store(std::string_view run) const {
  PENSTOCK_TRY(check_run_name(run));
  Result<std::string> text = files_.read_text(below(kPairs, run), kLongest);
  if (!text.ok() && text.error().code == Errc::not_found) return std::optional<std::string>();
  PENSTOCK_ASSIGN(std::string uuid, std::move(text));
  while (uuid.ends_with('\n')) uuid.pop_back();
  return std::optional<std::string>(std::move(uuid));
}

Result<void> CheckpointStore::record_slow_store(std::string_view run, const CheckpointStore& slow) {
  PENSTOCK_TRY(check_run_name(run));
  return files_.write_text(below(kPairs, run), slow.uuid() + "\n", Durability::file_and_name, IfExists::fail);
}

Result<void> CheckpointStore::forget(std::string_view run) {
  PENSTOCK_TRY(check_run_name(run));
  PENSTOCK_TRY(still_there());
  for (const std::string& name :
       {below(kStoreCommitted, run), below(kPairs, run), below(kStoreLocks, std::string(run) + ".save"),
        below(kStoreLocks, std::string(run) + ".drain")}) {
    const Result<void> gone = files_.backend().names().remove(name);
    if (!gone.ok() && gone.error().code != Errc::not_found) return files_.named(gone.error());
  }
  return success();
}

}  // namespace penstock
