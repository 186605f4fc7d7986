// What each rank did to each file, as Darshan's records say it.
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

// Of a file's key: the same in every log, as Darshan's own are, so that logs can be compared. `name` tells
// names apart that share a key: 0 for the first.
std::uint64_t record_id(std::uint64_t key, std::uint64_t name = 0);

struct FileOfRank {
  std::uint64_t id = 0;
  std::string_view path;  // is in a mapping; "" where it has no name
  std::uint32_t rank = 0;
  std::optional<PosixRecord> posix;  // io_uring and libaio are in it, as what moves bytes without streams
  std::optional<StdioRecord> stdio;
};

// The first entries of a list that is not empty, as far as they are like the first one.
template <class Entry>
std::span<const Entry> first_run(std::span<const Entry> entries, const auto& same) {
  const auto end = std::ranges::find_if_not(entries, [&](const Entry& one) { return same(entries[0], one); });
  return entries.first(static_cast<std::size_t>(end - entries.begin()));
}

// Calls `each` for all that is wanted and was touched, file by file; the records of one file stand together.
// Moments are seconds since `begin_ns`.
using EachFileOfRank = std::function<void(const FileOfRank&)>;
void each_file_of_rank(const FileSums& sums, const SessionFilter& filter, const SessionRanks& ranks,
                       std::int64_t begin_ns, const EachFileOfRank& each);

}  // namespace penstock::darshan
