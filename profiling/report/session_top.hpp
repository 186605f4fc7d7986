// Inspects sessions while they run, through their files only. The recorded processes are not stopped, and no
// request is sent to them.
#pragma once

#include <chrono>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session_filter.hpp"
#include "results/record/record.hpp"

namespace penstock {

// A session at one moment, with the progress of each of its files.
struct Look {
  struct Point {
    std::uint64_t file = 0;
    std::uint64_t bytes_read = 0;
    std::uint64_t bytes_written = 0;
    std::uint64_t operations = 0;
    std::string_view path;  // points into the session's mappings
  };
  Session session;
  std::chrono::steady_clock::time_point when;
  std::vector<Point> points;  // sorted by `file`, the key of the name; each key once
  Point all;                  // the sum of all files, also of a second file with the same key
  std::size_t processes = 0;  // processes that run
  double running_s = 0;       // seconds since the first process began
};
Look inspect(Session session, const SessionFilter& filter);

// The difference between two Looks. Without an earlier one, everything since the begin.
struct Change {
  double seconds = 0;
  Look::Point all;
  std::uint64_t files = 0;           // files with any operation
  std::vector<Look::Point> hottest;  // sorted by bytes, then by operations; values are the difference
};
Change change_of(const Look* before, const Look& now, std::size_t most);

std::string change_text(const Look& now, const Change& change, const Output& output);
Json change_json(const Look& now, const Change& change);
// The files in `hottest`.
Json hottest_json(const Change& change);

}  // namespace penstock
