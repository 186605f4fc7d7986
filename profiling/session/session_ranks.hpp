// Gives each process of a session a rank: the one that a launcher (such as mpirun) gave it, or else the next
// free number.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiling/session/session.hpp"

namespace penstock {

// Gives ranks to processes. A process to which a launcher gave a rank keeps it, and the processes that it
// starts have the same rank. All other processes get the numbers after the launcher's highest rank, in the
// order in which they began; without a launcher, from 0.
class SessionRanks {
 public:
  explicit SessionRanks(const Session& session);

  uint32_t rank_of(const ProcessFile& process_file) const;
  uint32_t count() const { return uint32_t(hosts_.size()); }
  // "" if no process of that rank was recorded
  std::string_view host(uint32_t rank) const { return hosts_[rank]; }

 private:
  std::unordered_map<const ProcessFile*, uint32_t> ranks_;
  std::vector<std::string_view> hosts_;
};

}  // namespace penstock
