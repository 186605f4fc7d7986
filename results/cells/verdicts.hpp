// The sentences about records, printed under a table on stdout and at the top of the report. Every
// sentence is computed; where the data for one is lacking there is none. The views of the commands say what
// an experiment came to (record_view.hpp), each by rules of its own; what is said of any record is here:
//  - Repeats that lie more than 20% apart are noise worth a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "results/record/record.hpp"

namespace penstock {

enum class Tone : std::uint8_t {
  finding,  // what the experiment was for
  caution,  // something that a reader must know before believing a number
  failure,  // a cell that has no number
};

struct Sentence {
  Tone tone = Tone::finding;
  std::string kind;  // "scaling", "tiers", "prefetch", ...: for tests and for the page's anchors
  std::string text;
  std::string anchor = {};  // id of what it rests on, on the report page; "" for no place of its own
};

// The place of a section's i-th group on the report page, from 0: "reading-1".
std::string group_anchor(std::string_view section, std::size_t index);

inline constexpr double kScalingGain = 0.10;
inline constexpr double kSameRate = 0.05;
inline constexpr double kNoisySpread = 0.20;
inline constexpr double kCeilingTolerance = 1.02;

// Findings first, then cautions, then failures.
std::vector<Sentence> sentences(std::span<const Record> records, const Output& output);

// One curve's scaling verdict, for anyone who has rates by thread count. 0 threads: nothing can be said
// (fewer than two counts, or a rate of 0).
struct Scaling {
  std::uint64_t stops_at = 0;  // the thread count after which nothing gains; the last when it still gains
  bool still_gains = false;    // the last step brought 10% and more
  double lost_after = 0;       // fraction lost from the peak to the last count; 0 below 10%
  std::uint64_t peak_at = 0;
  double gain = 0;  // the rate at stops_at over that at the first count
};
struct ScalingPoint {
  std::uint64_t threads = 0;
  double rate = 0;
};
Scaling judge_scaling(std::span<const ScalingPoint> curve);  // by rising threads

}  // namespace penstock
