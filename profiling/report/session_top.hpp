// Sessions while they run, from their files alone: the targets are neither stopped nor asked.
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

// A session, and how far each of its files had come at some moment.
struct Look {
  struct Point {
    std::uint64_t file = 0;
    std::uint64_t bytes_read = 0;
    std::uint64_t bytes_written = 0;
    std::uint64_t operations = 0;
    std::string_view path;  // is in the session's mappings
  };
  Session session;
  std::chrono::steady_clock::time_point when;
  std::vector<Point> points;  // by rising key, each key once
  Point all;                  // of these
  std::size_t processes = 0;  // that run
  double running_s = 0;       // since the first one's begin
};
Look inspect(Session session, const SessionFilter& filter);

// What happened between two looks, or since the begin where there is no earlier one.
struct Change {
  double seconds = 0;
  Look::Point all;
  std::uint64_t files = 0;           // that anything was done to
  std::vector<Look::Point> hottest;  // by bytes, then by operations; what came in between
};
Change change_of(const Look* before, const Look& now, std::size_t most);

std::string change_text(const Look& now, const Change& change, const Output& output);
Json change_json(const Look& now, const Change& change);
// The files of `hottest`.
Json hottest_json(const Change& change);

}  // namespace penstock
