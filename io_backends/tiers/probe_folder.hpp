// The folder that a probe works in: its own, and gone with it.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Removes what killed probes left: folders whose locks no process holds. Not on a network, where the locks of
// other machines may be invisible.
void sweep_dead_probes(Tier& tier);

// "penstock-probe-<id>" on the tier, made by what is put there.
class ProbeFolder {
 public:
  explicit ProbeFolder(Tier& tier);
  ProbeFolder(const ProbeFolder&) = delete;
  ProbeFolder& operator=(const ProbeFolder&) = delete;
  ~ProbeFolder();

  // Says to other probes that somebody works here, where the back end has locks and sweep_dead_probes() asks
  // for them. One that sweeps may take the folder for a dead probe's before it is locked, and is left to it.
  void occupy();

  std::string object(std::string_view kind, std::uint64_t n) const;
  std::string folder(std::string_view name) const { return name_ + "/" + std::string(name); }

 private:
  Tier& tier_;
  std::string name_;
  std::unique_ptr<Lock> lock_;
};

}  // namespace penstock
