// Makes all objects below a target durable by one sync of its file system at the end. This is much cheaper
// than one sync per object. It also makes checks of existing objects read the device: the page cache may
// contain bytes that never reached the device.
#pragma once

#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Makes the objects below the root of a tier durable. Borrows the tier's back end. Any thread may use it. On
// a tier in memory, or on a back end without native files, sync() and drop_from_cache() do nothing.
class TargetSync {
 public:
  // Call this before the first object is written, when the root exists. sync() then reports every failed
  // write-back after this call, even if another process has synced the file system and got the error first.
  static Result<TargetSync> begin(const Tier& tier);

  // The durability with which to publish objects. They become durable by a later sync(). If that sync fails,
  // none of them counts as durable.
  Durability object_durability() const { return object_durability_; }

  // Makes every byte and every name below the root durable. Fails if any byte or name is not durable, or may
  // not be.
  Result<void> sync() const;

  // drop_from_cache() drops an object from the page cache, so that the next read comes from the device.
  // Without this, a check could not find bytes that a failed write-back lost, because the page cache still
  // has them. drop_from_cache() fails if the object does not exist, or if bytes of it are lost.
  // sync_before_checks() must be called once before the first drop_from_cache(): it writes changed pages
  // back, because the kernel drops only clean ones.
  void sync_before_checks() const;
  Result<void> drop_from_cache(std::string_view name) const;

 private:
  explicit TargetSync(const Backend& backend) : backend_(&backend) {}

  const Backend* backend_;
  Durability object_durability_ = Durability::file_and_name;
  Fd root_;  // the opened root, if sync() syncs its whole file system
  std::string path_;
};

// Whether syncfs(2) of the Linux release `release` (uname -r) reports failed write-backs. It has done so
// since Linux 5.8.
bool syncfs_reports_errors(std::string_view release);

}  // namespace penstock
