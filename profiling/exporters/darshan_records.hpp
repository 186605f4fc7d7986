// What each rank did to each file, as Darshan's records say it.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
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

// Calls `each` for all that is wanted and was touched, file by file; the records of one file stand together.
// Moments are seconds since `begin_ns`.
using EachFileOfRank = std::function<void(const FileOfRank&)>;
void each_file_of_rank(const FileSums& sums, const SessionFilter& filter, const SessionRanks& ranks,
                       std::int64_t begin_ns, const EachFileOfRank& each);

}  // namespace penstock::darshan
