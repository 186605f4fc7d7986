// What was measured of one tier with one number of threads: its repeats, its verdict, and its record.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/read/read_options.hpp"
#include "benchmarks/read/read_team.hpp"
#include "datagen/manifest/manifest.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"
#include "results/record/trial.hpp"

namespace penstock {

// One tier with one number of threads. The i-th baseline repeat was measured right before or right after the
// i-th repeat, in the same cache state.
struct ReadCell {
  std::size_t tier = 0;  // index into the tiers of the sweep
  unsigned threads = 1;
  std::vector<RepeatFigures> repeats;
  std::vector<double> baseline_samples_per_s;
  double ceiling_bytes_per_s = 0;  // the best probe of the probe series or baseline repeat; 0: not measured
  std::string ceiling_probe;       // which: "queued.2x16"
  Verdict verdict = Verdict::ok;   // the worst so far, with its reason
  std::string reason;
  std::uint64_t errors = 0;  // skipped samples, in the repeats
  std::uint64_t failed_in_warm_up = 0;
  std::vector<std::string> first_errors;

  void judge(Verdict what, std::string_view why);
};

// Judges the cell by what a run delivered: the warm-up pass or a repeat. Returns whether the tier is given
// up: then all `of_tier`, the cells of the same tier, get the verdict.
bool judge_run(ReadCell& cell, std::span<ReadCell> of_tier, const RunTally& tally,
               const ReadOptions& options);
void judge_all(std::span<ReadCell> cells, Verdict verdict, std::string_view why);

// When no more repeats come. `stopped`: by the user.
void judge_at_end(ReadCell& cell, const ReadOptions& options, bool stopped);

// Fills the trial with what the cell measured: docs/records.md, row `read`. `first` is the cell of the same
// tier with the sweep's first number of threads, which `scaling` is relative to.
void record_cell(const ReadCell& cell, const ReadCell& first, const Tier& tier, const Manifest& manifest,
                 std::uint64_t tier_bytes_read, Trial& trial);

}  // namespace penstock
