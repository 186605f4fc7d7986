// The folder in which one probe works. It is removed when the probe ends.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Removes the folders of killed probes: those whose lock no process holds. Does nothing on a network, where
// the locks of other machines may be invisible. `log` gets a sentence for each removed folder, `log_warning`
// one for each that stays.
void sweep_dead_probes(Tier& tier, const std::function<void(std::string_view)>& log,
                       const std::function<void(std::string_view)>& log_warning);

// The folder "penstock-probe-<id>" on a tier. The first object in it creates it. The destructor removes it
// and all its objects, and calls `log_warning` if something stays. One thread.
class ProbeFolder {
 public:
  ProbeFolder(Tier& tier, std::function<void(std::string_view)> log_warning);
  ProbeFolder(const ProbeFolder&) = delete;
  ProbeFolder& operator=(const ProbeFolder&) = delete;
  ~ProbeFolder();

  // Locks the folder, so that sweep_dead_probes() of another probe does not remove it. Does nothing if the
  // back end has no locks, or on a network. If another probe has locked the folder first to remove it, this
  // one draws another name.
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
