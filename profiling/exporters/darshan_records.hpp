// Makes Darshan's records from a session: one for each file and rank.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string_view>

#include "profiling/exporters/darshan_log.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"
#include "profiling/session/session_ranks.hpp"

namespace penstock::darshan {

// Returns the id of the file with this key, the hash of its name (penstock_name::file). The file has the same
// id in every log, so that logs can be compared; Darshan's own ids have this property too. If several names
// have the same key, `name` is the number of the name, from 0.
uint64_t record_id(uint64_t key, uint64_t name = 0);

struct FileOfRank {
  uint64_t id = 0;
  std::string_view path;  // points into a mapped session file; "" if the name is unknown
  uint32_t rank = 0;
  std::optional<PosixRecord> posix;  // includes io_uring and libaio, as Darshan's POSIX module does
  std::optional<StdioRecord> stdio;
};

// Returns the first entries of the list that are equal to entries[0], up to the first one that is not. `same`
// compares two entries. The list must not be empty.
template <class Entry>
std::span<const Entry> equal_head(std::span<const Entry> entries, const auto& same) {
  const auto end = std::ranges::find_if_not(entries, [&](const Entry& one) { return same(entries[0], one); });
  return entries.first(size_t(end - entries.begin()));
}

using EachFileOfRank = std::function<void(const FileOfRank&)>;
// Calls `each` once for each rank and each file that this rank used, if the filter wants the file. The calls
// for one file follow one another. Start and end times are seconds since `begin_ns`.
void each_file_of_rank(const FileSums& sums, const SessionFilter& filter, const SessionRanks& ranks,
                       int64_t begin_ns, const EachFileOfRank& each);

}  // namespace penstock::darshan
