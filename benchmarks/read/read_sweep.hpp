// The read micro-benchmark: every tier with every number of threads, measured in turn, next to its two
// yardsticks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "benchmarks/read/live_csv.hpp"
#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/read_team.hpp"
#include "benchmarks/read/read_tier.hpp"
#include "io_backends/core/cli/progress.hpp"
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

// Fills the trial with what the cell measured: docs/records.md, row `read`. `first` is the cell of the same
// tier with the sweep's first number of threads, which `scaling` is relative to.
void record_cell(const ReadCell& cell, const ReadCell& first, const Tier& tier, const Manifest& manifest,
                 std::uint64_t tier_bytes_read, Trial& trial);

// Borrows all that it is made of. All ranks sweep together: run() is collective and the cells are the same on
// every rank. One thread.
class ReadSweep {
 public:
  ReadSweep(const std::vector<Tier*>& tiers, const Manifest& manifest, const SampleList& samples,
            const ReadOptions& options, Communicator& ranks, Progress* progress = nullptr,
            LiveCsv* live = nullptr);

  // Measures all cells. A failure of a tier ends that tier's cells with the verdict, not the sweep;
  // interrupted, it stops where it is. Cells keep what they have.
  Result<void> run();

  const std::vector<ReadCell>& cells() const { return cells_; }

  const ReadTier& tier(std::size_t index) const { return *tiers_[index]; }

 private:
  Result<void> open_tier(ReadTier& tier);
  void warm_up(std::size_t index);
  void repeat_cell(ReadCell& cell, std::size_t repeat);
  void read_repeat(ReadCell& cell);
  void baseline_repeat(ReadCell& cell);
  void probe_ceiling(ReadCell& cell);
  std::optional<RepeatFigures> measure_repeat(ReadCell& cell, RepeatPlan plan);
  void raise_ceiling(ReadCell& cell, const RunTally& tally, std::string_view probe) const;
  std::span<ReadCell> cells_of(std::size_t tier);
  void note_repeat(const ReadCell& cell, std::string_view what);

  const Manifest& manifest_;
  const SampleList& samples_;
  const ReadOptions& options_;
  Communicator& ranks_;
  ReadTeam team_;
  Progress* progress_;  // advances by one a repeat of a cell
  LiveCsv* live_;
  std::vector<std::unique_ptr<ReadTier>> tiers_;
  std::vector<ReadCell> cells_;
  std::uint32_t repeats_measured_ = 0;  // whose spans a profiler was given
};

}  // namespace penstock
