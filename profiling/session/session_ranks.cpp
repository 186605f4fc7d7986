#include "profiling/session/session_ranks.hpp"

#include <algorithm>

namespace penstock {
namespace {

constexpr uint32_t kMostRanks = 1U << 22U;  // a file with a rank above this is damaged

// The header of the first process file that has a valid rank; null if none has.
const penstock_session_header* header_with_rank(const SessionProcess& process) {
  for (const ProcessFile* const process_file : process.process_files) {
    const penstock_session_header& header = process_file->header();
    if (header.rank < header.ranks && header.ranks <= kMostRanks) return &header;
  }
  return nullptr;
}

}  // namespace

SessionRanks::SessionRanks(const Session& session) {
  uint32_t rank_count = 0;
  for (const SessionProcess& process : session.processes)
    if (const auto* const header = header_with_rank(process); header != nullptr)
      rank_count = std::max(rank_count, header->ranks);
  hosts_.resize(rank_count);
  for (const SessionProcess& process : session.processes) {
    const auto* const header = header_with_rank(process);
    const auto rank = header != nullptr ? header->rank : uint32_t(hosts_.size());
    if (header == nullptr) hosts_.emplace_back();
    if (hosts_[rank].empty()) hosts_[rank] = process.first().host();
    for (const ProcessFile* const process_file : process.process_files) ranks_.emplace(process_file, rank);
  }
}

uint32_t SessionRanks::rank_of(const ProcessFile& process_file) const {
  return ranks_.at(&process_file);
}

}  // namespace penstock
