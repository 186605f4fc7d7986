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
struct SessionProgress {
  struct FileProgress {
    uint64_t file = 0;  // the key of the file's name; two names may have the same key
    uint64_t bytes_read = 0;
    uint64_t bytes_written = 0;
    uint64_t operations = 0;
    std::string_view path;  // points into the session's mappings
  };
  Session session;
  std::chrono::steady_clock::time_point time;
  std::vector<FileProgress> files;  // sorted by `file`, then by `path`
  FileProgress all;                 // the sum of all files
  size_t processes = 0;             // processes that run
  double running_s = 0;             // seconds since the first process began
};
SessionProgress measure_progress(Session session, const SessionFilter& filter);

// What a session did between two SessionProgress objects. If there is no previous object: what it did since
// the session began.
struct Change {
  double seconds = 0;
  SessionProgress::FileProgress all;
  uint64_t files = 0;  // files with at least one operation
  // the files with the most bytes in this time, sorted by bytes and then by operations
  std::vector<SessionProgress::FileProgress> hottest;
};
Change change_of(const SessionProgress* previous, const SessionProgress& current, size_t most);

std::string change_text(const SessionProgress& current, const Change& change, const Output& output);
Json change_json(const SessionProgress& current, const Change& change);
// Makes a JSON list of the files in Change::hottest.
Json hottest_json(const Change& change);

}  // namespace penstock
