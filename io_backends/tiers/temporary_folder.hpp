// A folder of a tier in which one process works (a probe, a demo). It is removed when the process ends, or by
// the next process of the same kind if it was killed.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/tiers/tier.hpp"

namespace penstock {

inline constexpr std::string_view kProbeFolderPrefix = "penstock-probe-";
inline constexpr std::string_view kDemoFolderPrefix = "penstock-demo-";

// Removes the folders of killed processes: those with this prefix that have the file
// of a lock, and no process has the lock. Does nothing on
// a network file system, because the locks of other machines may be invisible there. Calls `log` for each
// removed folder, and `log_warning` for each that it cannot remove.
void sweep_dead_folders(Tier& tier, std::string_view prefix, const std::function<void(std::string_view)>& log,
                        const std::function<void(std::string_view)>& log_warning);

// The folder "<prefix><id>" on a tier. It is created together with the first object in it. The destructor
// removes the folder with all its objects, and calls `log_warning` if it cannot. Only one thread may use it.
class TemporaryFolder {
 public:
  TemporaryFolder(Tier& tier, std::string_view prefix, std::function<void(std::string_view)> log_warning);
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;
  ~TemporaryFolder();

  // Locks the folder, so that sweep_dead_folders() of another process does not remove it. If that function
  // has the lock already, and is about to remove the folder, occupy() draws a new <id>. Does nothing if the
  // back end has no locks, or on a network.
  void occupy();
  void keep() { is_kept_ = true; }  // the destructor leaves the folder, and removes only its lock

  const std::string& name() const { return name_; }
  std::string object(std::string_view kind, uint64_t n) const;
  std::string folder(std::string_view name) const { return name_ + "/" + std::string(name); }

 private:
  Tier& tier_;
  std::string prefix_;
  std::function<void(std::string_view)> log_warning_;
  std::string name_;
  std::unique_ptr<Lock> lock_;
  bool is_kept_ = false;
};

}  // namespace penstock
