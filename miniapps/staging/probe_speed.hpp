// Measures how fast two tiers read files of given sizes, with short reads.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "io_backends/tiers/tier.hpp"
#include "miniapps/staging/session_work.hpp"
#include "miniapps/staging/speed.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct SpeedProbe {
  std::vector<unsigned> threads;         // numbers of reading threads, ascending from 1
  unsigned copy_threads = 1;             // threads that write the files on the fast tier
  std::chrono::nanoseconds min_time{0};  // length of a measurement of one size with one number of threads
  size_t repeats = 1;
  bool cold = true;  // files are evicted from the page cache before each repeat
  uint64_t seed = 0;
  // Called with a text that names the next measurement; may be empty.
  std::function<void(std::string_view what)> note;
  // log() and warn() show the user a note or a warning of one sentence.
  std::function<void(std::string_view)> log;
  std::function<void(std::string_view)> warn;
};

struct TierSpeeds {
  SpeedTable slow;
  SpeedTable fast;
};

// Returns the numbers of threads to measure with: 1, the square root of `most`, and `most`.
std::vector<unsigned> probe_threads(unsigned most);

// Measures how fast both tiers read files like those of `work`, with the simplest loop: open, read, close
// (datagen/yardsticks/baseline.hpp).
// On the slow tier it reads the files of `work`, split by size into up to 6 parts with equal numbers of
// files. On the fast tier it writes files of the same sizes into its own folder "penstock-probe-<id>", reads
// them, and removes the folder, also after an error.
Result<TierSpeeds> probe_speeds(Tier& slow, Tier& fast, const SessionWork& work, const SpeedProbe& probe);

// Takes the speeds of both tiers from records of `penstock tiers --probe`, which measures one small and one
// large file size. Uses the records whose TIER argument has the same text as the tier's. not_found if a tier
// has no record; the error shows the command that makes one.
Result<TierSpeeds> recorded_speeds(const Tier& slow, const Tier& fast, std::span<const Record> records);

}  // namespace penstock
