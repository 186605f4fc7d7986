// The read micro-benchmark: every tier with every number of threads, measured in turn, next to its two
// yardsticks.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "benchmarks/read/live_csv.hpp"
#include "benchmarks/read/read_cell.hpp"
#include "benchmarks/read/read_engine.hpp"
#include "benchmarks/read/read_team.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/tiers/tier.hpp"

namespace penstock {

// Borrows all that it is made of. All ranks sweep together: run() is
// collective and the cells are the same on every rank. One thread.
class ReadSweep {
 public:
  ReadSweep(std::vector<Tier*> tiers, const Manifest& manifest, const SampleList& samples,
            const ReadOptions& options, Communicator& ranks, Progress* progress = nullptr,
            LiveCsv* live = nullptr);
  ~ReadSweep();

  // Measures all cells. A failure of a tier ends that tier's cells with the verdict, not the sweep;
  // interrupted, it stops where it is. Cells keep what they have.
  Result<void> run();

  const std::vector<ReadCell>& cells() const { return cells_; }

  // Of SampleOrder::physical: what it sorts the tier's samples by (PhysicalPlaces::by); "" where it does not.
  std::string_view sorted_by(std::size_t tier) const;

  // All payload bytes that this rank read from the tier so far: warm-up, baseline, ceilings, warming and
  // repeats.
  std::uint64_t tier_bytes_read(std::size_t tier) const;

 private:
  struct Place;  // what belongs to a tier while the sweep lasts

  Result<void> open_place(std::size_t tier);
  void warm_up(std::size_t tier);
  void repeat_cell(ReadCell& cell, std::size_t repeat);
  void read_repeat(ReadCell& cell);
  void baseline_repeat(ReadCell& cell);
  void probe_ceiling(ReadCell& cell);
  std::optional<RepeatFigures> measure_repeat(ReadCell& cell, RepeatPlan plan);
  void raise_ceiling(ReadCell& cell, const RunTally& tally, std::string_view probe) const;
  std::span<ReadCell> cells_of(std::size_t tier);
  void report_fallback(std::size_t tier);
  void note_repeat(const ReadCell& cell, std::string_view what);

  std::vector<Tier*> tiers_;
  const Manifest& manifest_;
  const SampleList& samples_;
  const ReadOptions& options_;
  Communicator& ranks_;
  ReadTeam team_;
  Progress* progress_;  // advances by one a repeat of a cell
  LiveCsv* live_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<ReadCell> cells_;
  std::uint32_t repeats_measured_ = 0;  // whose spans a profiler was given
};

}  // namespace penstock
