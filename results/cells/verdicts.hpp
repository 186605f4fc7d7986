// The sentences about records, printed under a table on stdout and at the top of the report. Every sentence
// is computed; where the data for one is lacking there is none.
//
// The rules:
//  - A tier stops scaling at the first thread count after which no measured count brings 10% more. A curve
//    that falls by 10% and more from its peak to its last count loses: that is said instead. Rates are
//    against the fewest threads, repeat by repeat where both have as many.
//  - A tier feeds X times another at the highest thread count that both were measured at; within 5% they feed
//    the same.
//  - Baseline: samples_per_s over baseline_samples_per_s, repeat by repeat where both have as many repeats.
//  - Prefetching took away 1 - (input wait per step with prefetch K) / (the same with prefetch 0) of the
//    waiting; where prefetch 0 was not measured, it hid `input_overlap` of the input's own time.
//  - No comparison is said of a difference within the spread of the repeats ((max - min) / median of the rows
//    compared): such rows cannot be told apart. What rests on rows of one repeat says so and is a caution.
//  - Ceiling: a tier's fastest row against the highest ceiling that any of its rows has. Rows that decode say
//    how far decoding stays below that.
//  - "At most N accelerators" is a division of a read rate and says so.
//  - Saves hold the training X times shorter than direct ones: direct over the other arm, pair by pair, by
//  the
//    medians of either run. Pairs on both sides of 1 cannot be told apart; of one pair it is a caution.
//    Ceilings that something surpassed are not spoken of.
//  - The fewest threads that do: of a grid of threads and prefetch depths, the cell with the fewest threads,
//  then the
//    least prefetch, that lies within 5% of the best cell.
//  - Repeats that lie more than 20% apart are noise worth a word.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "results/cells/cells.hpp"
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
inline constexpr double kDecodingLimits = 2;  // a ceiling this many times the decoded rate: decoding limits
inline constexpr double kSlowerSteps = 0.05;  // steps during a drain: less is not reported
inline constexpr double kAcceleratorImages = 200;  // samples/s that one accelerator takes, for "at most N"

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

// 1 - (input wait per step with `prefetch`) / (the same with prefetch 0); negative when it got worse. Absent
// without both.
std::optional<double> hidden_by_prefetch(const TrainGroup& group, std::uint64_t prefetch);

// samples_per_s over baseline_samples_per_s: the median of the repeats' ratios where both have equally many.
std::optional<double> baseline_ratio(const Record& record);

// A record of the curve against that with the fewest threads, in the same way: repeats of a sweep are
// measured in turn.
std::optional<double> scaling_ratio(const ReadCurve& curve, const Record& record);

}  // namespace penstock
