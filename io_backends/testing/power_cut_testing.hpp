// For tests only: cuts the power of real file systems, makes any back end fail from its n-th operation on,
// and leaves out syncs.
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

// Shuts down the mounted file system of `path`, as if the power had gone: it does no more reads and writes,
// and unsynced data does not reach the device. Mounting it again shows what survived. Supports ext4, xfs and
// a few others. permission_denied without root.
Result<void> shut_down_file_system(const std::filesystem::path& path);

// A file system on its own loop device (ci/testbed/loop_disk). The destructor removes it.
class LoopDisk {
 public:
  // `kind`: ext4 or xfs. `unsupported` if this machine or user cannot make one; the test then skips. `room`
  // ("100M"): the device stores at most this much, and further writes fail until mend(). xfs needs 65 MiB of
  // it before the first file. Only xfs continues after such failures.
  static Result<std::unique_ptr<LoopDisk>> make(std::string_view kind, std::string_view room = "");
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  std::filesystem::path path() const { return folder_ / "mount"; }
  Result<void> mend() const;
  Result<void> cut() const { return shut_down_file_system(path()); }
  // Mounts it again, after a cut or without one. None of its files may be open.
  Result<void> restart() const;
  // Syncs the whole file system to the device.
  Result<void> sync() const;

 private:
  explicit LoopDisk(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path folder_;
};

// Counts the operations of all back ends that share it, and makes them fail from the n-th on. Any thread.
class PowerCut {
 public:
  // Before operation n, counted from 1, it calls `what` once (n = 0: never). Operation n and all later calls
  // fail with io, also reads.
  PowerCut(std::uint64_t n, std::function<void()> what) : at_(n), what_(std::move(what)) {}
  std::uint64_t operations() const { return count_; }
  bool happened() const { return at_ != 0 && count_ >= at_; }

  Result<void> step(std::string_view operation, std::string_view name);
  Result<void> alive(std::string_view operation, std::string_view name) const;

 private:
  const std::uint64_t at_;
  const std::function<void()> what_;
  std::atomic<std::uint64_t> count_{0};
};

// Wraps a back end. Operations are create, each written piece, publish, make_folders, rename, remove,
// sync_dir and lock. A publish with Durability::file_and_name counts one for the object and one for each
// folder above it.
std::unique_ptr<Backend> cut_off(std::unique_ptr<Backend> inner, PowerCut& power);

// Wraps a back end. If `skips` returns true for a sync, the sync is not done and success is reported.
enum class Synced : std::uint8_t { bytes, folder };
using Skips = std::function<bool(Synced what, std::string_view name)>;
std::unique_ptr<Backend> lying(std::unique_ptr<Backend> inner, Skips skips);

}  // namespace penstock
