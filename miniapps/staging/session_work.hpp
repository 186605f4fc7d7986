// Finds out what the program of a session reads from a tier: which files, with how many threads, and how much
// time these threads spend without reading.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

// A regular file below the tier's root that was read and not written.
struct FileThatWasRead {
  std::string name{};        // relative to the root
  uint64_t bytes = 0;        // its size now
  int64_t mtime_ns = 0;      // its modification time now
  double requests = 0;       // reads per epoch that do not begin where the previous read ended
  double request_bytes = 0;  // mean bytes of one request
  double cached = 0;         // fraction of the file in this machine's page cache now
  int64_t first_ns = 0;      // when it was first read
};

struct SessionWork {
  std::vector<FileThatWasRead> files;  // sorted by name
  double epochs = 0;                   // median over the files of how often each was read
  uint64_t epoch_bytes = 0;
  unsigned threads = 1;   // the most threads that read at the same time
  double observed_s = 0;  // seconds of one epoch
  double think_s = 0;     // thread-seconds of one epoch in which these threads did not read
  bool by_spans = false;  // true: the program itself reported its reading; false: its calls show it
  // Numbers of files that were left out, by reason.
  uint64_t gone_files = 0;     // no regular file of that name exists now
  uint64_t shrunk_files = 0;   // shorter than in the session
  uint64_t written_files = 0;  // written by the program itself: a copy would be out of date at once
  uint64_t odd_names = 0;      // the name is not UTF-8 or is too long

  uint64_t bytes() const;
  double cached_bytes() const;
};

// Finds what the program of the session read below the root of `slow`. not_found if the program read nothing
// there (the error names the folder that it read most from), or if every file that it read there is left out.
// invalid_argument if the tier has no native paths. `look_in_cache`: also finds out how much of each file is
// cached.
Result<SessionWork> work_of(const Session& session, const SessionFilter& filter, const Tier& slow,
                            bool look_in_cache);

}  // namespace penstock
