// The folder in which one probe works (`tiers --probe`). It is removed when the probe ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Removes folders of killed probes: the probe folders whose lock no process holds. Does nothing on a network
// file system, because the locks of other machines may be invisible there. Calls `log` for each removed
// folder, and `log_warning` for each that it cannot remove.
void sweep_dead_probes(Tier& tier, const std::function<void(std::string_view)>& log,
                       const std::function<void(std::string_view)>& log_warning);

// The folder "penstock-probe-<id>" on a tier. It is created together with the first object in it. The
// destructor removes the folder with all its objects, and calls `log_warning` if it cannot. Only one thread
// may use it.
class ProbeFolder {
 public:
  ProbeFolder(Tier& tier, std::function<void(std::string_view)> log_warning);
  ProbeFolder(const ProbeFolder&) = delete;
  ProbeFolder& operator=(const ProbeFolder&) = delete;
  ~ProbeFolder();

  // Locks the folder, so that another probe's sweep_dead_probes() does not remove it. If that function has
  // the lock already, and is about to remove the folder, occupy() draws a new <id>. Does nothing if the back
  // end has no locks, or on a network.
  void occupy();

  std::string object(std::string_view kind, uint64_t n) const;
  std::string folder(std::string_view name) const { return name_ + "/" + std::string(name); }

 private:
  Tier& tier_;
  std::function<void(std::string_view)> log_warning_;
  std::string name_;
  std::unique_ptr<Lock> lock_;
};

}  // namespace penstock
