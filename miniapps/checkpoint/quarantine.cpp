#include "miniapps/checkpoint/quarantine.hpp"

namespace penstock {
namespace {

void quarantine_copy(CheckpointStore& store, const CheckpointManifest& manifest, const Error& why,
                     FailedDrain& failed) {
  failed.why = why.message();
  const Result<bool> moved = quarantine_if_wrong(store, manifest.run, manifest.id, why);
  failed.quarantined = moved.ok() && *moved;
  if (!moved.ok()) failed.moved = moved.error();
}

// The manifest in the store, if all files there match it.
Result<CheckpointManifest> whole_there(const CheckpointStore& store, const CheckpointManifest& manifest) {
  PENSTOCK_ASSIGN(CheckpointManifest there, store.manifest(manifest.run, manifest.id));
  PENSTOCK_TRY(store.verify(manifest.run, there));
  return there;
}

}  // namespace

Result<bool> quarantine_if_wrong(CheckpointStore& store, std::string_view run, const CheckpointId& id,
                                 const Error& why) {
  if (!is_data_error(why.code)) return false;
  PENSTOCK_TRY(store.quarantine(run, id, why.message()));
  return true;
}

FailedDrain look_into_failed_drain(CheckpointStore& fast, CheckpointStore& slow,
                                   const CheckpointManifest& manifest, const Error& error) {
  FailedDrain failed{.why = error.message()};
  if (error.code == Errc::already_exists) {
    const Result<CheckpointManifest> whole = whole_there(slow, manifest);
    if (whole.ok()) {
      // The bytes are the same: an earlier read failed once.
      if (whole->files != manifest.files) failed.fate = DrainFate::taken;
    } else if (is_data_error(whole.error().code)) {
      quarantine_copy(slow, manifest, whole.error(), failed);
      if (failed.quarantined) failed.fate = DrainFate::cleared;
    }
    return failed;
  }
  // The error may come from the copy. The fast copy then stays, for another try.
  if (!is_data_error(error.code)) return failed;
  const Result<void> whole = fast.verify(manifest.run, manifest);
  if (whole.ok() || !is_data_error(whole.error().code)) return failed;
  failed.fate = DrainFate::lost;
  quarantine_copy(fast, manifest, whole.error(), failed);
  return failed;
}

}  // namespace penstock
