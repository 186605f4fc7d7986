// The processes of a session as ranks of a job: those of a launcher's where there is one.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "profiling/session/session.hpp"

namespace penstock {

// A process that a launcher gave a rank, and what that process began, are that rank. All others (every
// process where there is no launcher) are ranks behind the launcher's, in the order in which they began.
class SessionRanks {
 public:
  explicit SessionRanks(const Session& session);

  std::uint32_t of(const SessionImage& image) const;
  std::uint32_t count() const { return static_cast<std::uint32_t>(hosts_.size()); }
  std::string_view host(std::uint32_t rank) const { return hosts_[rank]; }  // "" where none of it was seen

 private:
  std::unordered_map<const SessionImage*, std::uint32_t> ranks_;
  std::vector<std::string_view> hosts_;
};

}  // namespace penstock
