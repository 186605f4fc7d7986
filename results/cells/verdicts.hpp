// Makes the sentences about records that are printed under a table and at the top of the report. Every
// sentence is computed from records. If a record lacks the data for a sentence, the sentence is left out.
// The sentences that apply to records of any command are made here: for example, that repeats are noisy if
// their spread is above 20%. The view of a command (record_view.hpp) makes the sentences about the results of
// that command.
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
  finding,  // a result that answers the question of the experiment
  caution,  // something that a reader must know before believing a number
  failure,  // a cell that has no number
};

struct Sentence {
  Tone tone = Tone::finding;
  std::string kind;  // "scaling", "tiers", "prefetch", ...: for tests and for the page's anchors
  std::string text;
  std::string anchor = {};  // id of the sentence's numbers on the report page; "" if they have no id
  // Another sentence describes a better cell of the same work, so this one is never among the first.
  bool is_secondary = false;
};

// The id (target of links) of a group in a section of the report page. For the section "reading" and `index`
// 0 it is "reading-1".
std::string group_anchor(std::string_view section, size_t index);

inline constexpr double kLeastScalingGain = 0.10;
inline constexpr double kSameRateTolerance = 0.05;
inline constexpr double kNoisySpread = 0.20;
inline constexpr double kCeilingTolerance = 1.02;

// All sentences about the records: findings first, then cautions, then failures. None occurs twice.
std::vector<Sentence> sentences(std::span<const Record> records, const Output& output);

// The sentences of one tone that are shown first, at most `most`: the first of each kind, then the second of
// each kind, and so on, without secondary ones. They are in the order of `all`.
std::vector<const Sentence*> leading_sentences(const std::vector<Sentence>& all, Tone tone, size_t most);

// What the records say in three sentences: what limits, by how much, and what to do. It is that of the first
// view which has one; else the sentences say what cannot be told and what to run.
std::vector<std::string> bottom_line(std::span<const Record> records, const Output& output);

// How a rate grows with the number of threads or ranks. useful_count is 0 if nothing can be concluded: there
// are fewer than two points, or the first rate is 0.
struct Scaling {
  // The count beyond which more threads or ranks gain less than 10%. If even the last count gains 10% or
  // more, it is the last count.
  uint64_t useful_count = 0;
  bool still_gains = false;  // the last count is at least 10% faster than the one before it
  // How much of the peak rate is lost at the last count, as a fraction; 0 if less than 10%.
  double loss_after_peak = 0;
  uint64_t peak_count = 0;
};
struct ScalingPoint {
  uint64_t threads = 0;  // or ranks
  double rate = 0;
};
Scaling measure_scaling(std::span<const ScalingPoint> curve);  // `curve` must be sorted by threads

}  // namespace penstock
