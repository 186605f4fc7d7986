// Makes what is written below a target survive a power cut, by one sync of its file system at the end, which
// is far cheaper than one of each object; and does not take the page cache's word for what is there already.
#pragma once

#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/fd.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Borrows the tier's back end. Any thread. On a tier in memory, and where a back end has no files of the
// system's, sync() and forget() have nothing to do.
class TargetSync {
 public:
  // Before the first object is written, and with the root there: sync() then tells of every write-back that
  // failed since, also where somebody else synced the file system meanwhile and was told, too.
  static Result<TargetSync> begin(const Tier& tier);

  // What to publish objects with where sync() follows and, if it fails, nothing of them is taken for granted.
  Durability objects() const { return objects_; }

  // Every byte and every name written below the root survives a power cut from here on; an error where any of
  // them does not, or may not.
  Result<void> sync() const;

  // Whoever reads the object next gets what the device has of it, rather than the page cache: there, a page
  // whose write-back failed stands as if it had been written. An error is the object's: it is not there, or
  // bytes of it are lost. begin_to_judge() comes before the first.
  void begin_to_judge() const;
  Result<void> forget(std::string_view name) const;

 private:
  explicit TargetSync(const Backend& backend) : backend_(&backend) {}

  const Backend* backend_;
  Durability objects_ = Durability::file_and_name;
  Fd root_;  // of a file system to sync as a whole
  std::string path_;
};

// Whether syncfs(2) of that Linux (uname -r) tells of write-backs that failed: 5.8 and later. Before, it says
// nothing of them.
bool syncfs_reports_errors(std::string_view release);

}  // namespace penstock
