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

// Reads the copy of this checkpoint in `store` completely. Returns the copy's manifest if its files match it.
Result<CheckpointManifest> verified_manifest(const CheckpointStore& store,
                                             const CheckpointManifest& manifest) {
  PENSTOCK_ASSIGN(CheckpointManifest existing, store.manifest(manifest.run, manifest.id));
  PENSTOCK_TRY(store.verify(manifest.run, existing));
  return existing;
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
    const Result<CheckpointManifest> verified = verified_manifest(slow, manifest);
    if (verified.ok()) {
      // The slow copy is valid. If it has the same files as the fast one, only an earlier read of it failed,
      // and another try may succeed. Otherwise it is another checkpoint of the same name.
      if (verified->files != manifest.files) failed.fate = DrainFate::name_taken;
    } else if (is_data_error(verified.error().code)) {
      quarantine_copy(slow, manifest, verified.error(), failed);
      if (failed.quarantined) failed.fate = DrainFate::slow_quarantined;
    }
    return failed;
  }
  // Only wrong bytes can mean that the fast copy is lost. After any other error it stays, and another drain
  // is tried.
  if (!is_data_error(error.code)) return failed;
  const Result<void> verified = fast.verify(manifest.run, manifest);
  if (verified.ok() || !is_data_error(verified.error().code)) return failed;
  failed.fate = DrainFate::fast_wrong;
  quarantine_copy(fast, manifest, verified.error(), failed);
  return failed;
}

}  // namespace penstock
