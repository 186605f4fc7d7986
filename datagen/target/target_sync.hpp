// Makes all objects below a target durable by one sync of its file system at the end, which is much cheaper
// than one per object. Also makes checks of existing objects read the device, because the page cache may
// contain bytes that were never written to it.
#pragma once

#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Borrows the tier's back end. Any thread. On a tier in memory, or on a back end without native files, sync()
// and drop_from_cache() do nothing.
class TargetSync {
 public:
  // Call it before the first object is written, when the root exists. From then on, sync() reports every
  // failed write-back, even if another process syncs the file system and gets the error first.
  static Result<TargetSync> begin(const Tier& tier);

  // The durability with which to publish objects before a later sync(). If that sync fails, treat none of
  // them as durable.
  Durability object_durability() const { return object_durability_; }

  // After success, every byte and every name below the root is durable. An error if any of them is not, or
  // may not be.
  Result<void> sync() const;

  // drop_from_cache() drops an object from the page cache, so that the next read comes from the device. After
  // a failed write-back the page cache still has the lost bytes, and a check would find them correct. An
  // error concerns the object: it does not exist, or bytes of it are lost. Call sync_before_checks() once
  // before the first drop_from_cache().
  void sync_before_checks() const;
  Result<void> drop_from_cache(std::string_view name) const;

 private:
  explicit TargetSync(const Backend& backend) : backend_(&backend) {}

  const Backend* backend_;
  Durability object_durability_ = Durability::file_and_name;
  Fd root_;  // the opened root, if sync() syncs its whole file system
  std::string path_;
};

// Whether syncfs(2) of this Linux release (uname -r) reports failed write-backs: 5.8 and later do. Earlier
// ones do not.
bool syncfs_reports_errors(std::string_view release);

}  // namespace penstock
