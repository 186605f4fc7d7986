// How fast two tiers give files of given sizes, measured by short reads on them.
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
  std::vector<unsigned> threads;         // that read at once, rising from 1
  unsigned copy_threads = 1;             // that write the files of the fast tier
  std::chrono::nanoseconds min_time{0};  // of each repeat of each size and number of threads
  std::size_t repeats = 1;
  bool cold = true;  // files are evicted from the page cache before each repeat
  std::uint64_t seed = 0;
  std::function<void(std::string_view what)> note;  // gets what is done now; may be empty
};

struct TierSpeeds {
  SpeedTable slow;
  SpeedTable fast;
};

// 1, the square root of `most`, and `most`.
std::vector<unsigned> probe_threads(unsigned most);

// Reads files of the work on the slow tier, from each of up to kMostKnots parts of equal count by size, and
// on the fast one files of the same sizes, which it makes in a folder "penstock-probe-<id>" of its own and
// takes away again, however it ends. By the simplest loop: open, read, close
// (datagen/yardsticks/baseline.hpp).
Result<TierSpeeds> probe_speeds(Tier& slow, Tier& fast, const SessionWork& work, const SpeedProbe& probe);

// The same from records of `penstock tiers --probe`: small files and large ones. A record is of the tier that
// was given by the same words. not_found where either has none, with the command that makes one.
Result<TierSpeeds> recorded_speeds(const Tier& slow, const Tier& fast, std::span<const Record> records);

}  // namespace penstock
