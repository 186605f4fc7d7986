// For tests only: cuts the power of real file systems, cuts off any back end at operation n, and leaves out
// syncs.
#pragma once

#include <atomic>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/backend/backend.hpp"

namespace penstock {

// Shuts down the mounted file system that contains `path`, as a power cut would: no later read or write
// works, and data that is not yet on the device never gets there. After a new mount all other data is
// available. Works for ext4, xfs and a few others. Fails with permission_denied without root.
Result<void> shut_down_file_system(const std::filesystem::path& path);

// A file system on a loop device (ci/testbed/loop_disk), which the destructor removes.
class LoopDisk {
 public:
  // `kind` is ext4 or xfs. Fails with unsupported if this machine or user cannot make such a disk; a test is
  // then skipped. `capacity` ("100M") limits what the device stores. Writes beyond that limit fail until
  // mend() removes it. xfs uses 65 MiB of that space before there is a file. Only xfs continues after failed
  // writes.
  static Result<std::unique_ptr<LoopDisk>> make(std::string_view kind, std::string_view capacity = "");
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  std::filesystem::path path() const { return folder_ / "mount"; }
  Result<void> mend() const;
  Result<void> cut() const { return shut_down_file_system(path()); }
  // Mounts the file system again, after a cut or without one. No file on it may be open.
  Result<void> restart() const;
  // Writes all cached data to the device (syncfs).
  Result<void> sync() const;

 private:
  explicit LoopDisk(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path folder_;
};

// Counts the operations of all back ends that share it, and makes them fail from a given number on. Any
// thread may call it.
class PowerCut {
 public:
  // Calls `on_cut` once before operation n, counted from 1 (0: never). That operation and everything later,
  // also reads, fails with io.
  PowerCut(uint64_t n, std::function<void()> on_cut) : cut_operation_(n), on_cut_(std::move(on_cut)) {}
  uint64_t operations() const { return count_; }
  bool happened() const { return cut_operation_ != 0 && count_ >= cut_operation_; }

  Result<void> step(std::string_view operation, std::string_view name);
  Result<void> check_power(std::string_view operation, std::string_view name) const;

 private:
  const uint64_t cut_operation_;
  const std::function<void()> on_cut_;
  std::atomic<uint64_t> count_{0};
};

// Wraps a back end. Operations are create, each written piece, publish, make_folders, rename, remove,
// sync_dir and lock. A publish that syncs the name counts as one operation for the object and one for each
// folder above.
std::unique_ptr<Backend> cut_off(std::unique_ptr<Backend> inner, PowerCut& power);

// Wraps a back end that leaves out the syncs for which `skips` returns true, and reports success for them.
enum class Synced : uint8_t { bytes, folder };
using Skips = std::function<bool(Synced what, std::string_view name)>;
std::unique_ptr<Backend> lying(std::unique_ptr<Backend> inner, Skips skips);

}  // namespace penstock
