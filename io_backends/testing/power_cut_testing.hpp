// For tests only: cutting the power of real file systems, cutting any back end off at the n-th operation, and
// leaving out syncs that matter.
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

// From now on the mounted file system that `path` is in reads and writes nothing more, and nothing that is
// not on its device gets there, as if the power had gone. What is left is there when it is mounted anew.
// ext4, xfs and a few others; permission_denied without root.
Result<void> shut_down_file_system(const std::filesystem::path& path);

// A file system of its own on a loop device (ci/testbed/loop_disk), and its end.
class LoopDisk {
 public:
  // `kind`: ext4 or xfs. unsupported where this machine or user cannot: a reason to skip.
  // `room` ("100M"): the device stores no more than that, of which xfs takes 65 MiB before there is a file,
  // and writes of more fail until mend(). Only xfs goes on without them.
  static Result<std::unique_ptr<LoopDisk>> make(std::string_view kind, std::string_view room = "");
  ~LoopDisk();
  LoopDisk(const LoopDisk&) = delete;
  LoopDisk& operator=(const LoopDisk&) = delete;

  std::filesystem::path path() const { return folder_ / "mount"; }
  Result<void> mend() const;
  Result<void> cut() const { return shut_down_file_system(path()); }
  // Mounted anew, after a cut or without one. No file of it may be open.
  Result<void> restart() const;
  // All that was written is on the device.
  Result<void> sync() const;

 private:
  explicit LoopDisk(std::filesystem::path folder) : folder_(std::move(folder)) {}
  const std::filesystem::path folder_;
};

// Counts the operations of all back ends that share it, and cuts them off at one of them. Any thread.
class PowerCut {
 public:
  // Before operation n, counted from 1, `what` is done, once (0: never); that one and all that follows,
  // reading too, fails with io.
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

// Operations: create, each piece written, publish, make_folders, rename, remove, sync_dir and lock. A publish
// with its name synced is one of the object and one of each folder above.
std::unique_ptr<Backend> cut_off(std::unique_ptr<Backend> inner, PowerCut& power);

// Syncs that `skips` says yes to are left out, and success is reported.
enum class Synced : std::uint8_t { bytes, folder };
using Skips = std::function<bool(Synced what, std::string_view name)>;
std::unique_ptr<Backend> lying(std::unique_ptr<Backend> inner, Skips skips);

}  // namespace penstock
