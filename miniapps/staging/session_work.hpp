// What a session's program reads of a tier, file by file, and how: by how many threads, with how much time
// spent elsewhere.
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
struct ReadFile {
  std::string name{};         // relative to the root
  std::uint64_t bytes = 0;    // its size now
  std::int64_t mtime_ns = 0;  // now
  double requests = 0;        // an epoch: reads that begin somewhere else than where the one before ended
  double request_bytes = 0;   // each
  double cached = 0;          // part of it that is in this machine's page cache now
  std::int64_t first_ns = 0;  // when it was first read
};

struct SessionWork {
  std::vector<ReadFile> files;  // by name
  double epochs = 0;            // how often the middle file was read
  std::uint64_t epoch_bytes = 0;
  unsigned threads = 1;   // that read at once
  double observed_s = 0;  // of an epoch
  double think_s = 0;     // of an epoch, thread-seconds: of those threads, outside of reading
  bool by_spans = false;  // said by the program itself; else by its calls
  // Files that were left out, and why.
  std::uint64_t gone = 0;
  std::uint64_t changed = 0;  // shorter than the session saw
  std::uint64_t written = 0;  // by the program itself: a copy would be old at once
  std::uint64_t odd_names = 0;

  std::uint64_t bytes() const;
  double cached_bytes() const;
};

// not_found where nothing of the session lies on the tier, with where its files do lie; invalid_argument
// where the tier has no native paths. `look_in_cache`: asks for each file how much of it is cached.
Result<SessionWork> work_of(const Session& session, const SessionFilter& filter, const Tier& slow,
                            bool look_in_cache);

}  // namespace penstock
