// Makes the sentences about records that are printed under a table and at the top of the report. Every
// sentence is computed; a sentence without data is left out. What an experiment showed is described by the
// view of its command (record_view.hpp). The sentences about any record are made here. One of them: repeats
// whose spread is above 20% are reported as noise.
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

enum class Tone : uint8_t {
  finding,  // what the experiment was for
  caution,  // something that a reader must know before believing a number
  failure,  // a cell that has no number
};

struct Sentence {
  Tone tone = Tone::finding;
  std::string kind;  // "scaling", "tiers", "prefetch", ...: for tests and for the page's anchors
  std::string text;
  std::string anchor = {};  // id of its numbers on the report page; "" if they have none
};

// The id of a section's group on the report page; `index` counts from 0: "reading-1" for index 0.
std::string group_anchor(std::string_view section, size_t index);

inline constexpr double kLeastScalingGain = 0.10;
inline constexpr double kSameRateTolerance = 0.05;
inline constexpr double kNoisySpread = 0.20;
inline constexpr double kCeilingTolerance = 1.02;

// Findings first, then cautions, then failures.
std::vector<Sentence> sentences(std::span<const Record> records, const Output& output);

// How a rate scales with the number of threads. useful_threads is 0 if nothing can be concluded: fewer than
// two points, or a first rate of 0.
struct Scaling {
  // More threads than this gain less than 10%. It is the last count if that still gains 10% or more.
  uint64_t useful_threads = 0;
  bool still_gains = false;    // the last step gained 10% or more
  double loss_after_peak = 0;  // the fraction lost between the peak and the last count; 0 if it is below 10%
  uint64_t peak_threads = 0;
  double gain = 0;  // the rate at useful_threads divided by the rate at the first count
};
struct ScalingPoint {
  uint64_t threads = 0;
  double rate = 0;
};
Scaling measure_scaling(std::span<const ScalingPoint> curve);  // sorted by threads

}  // namespace penstock
