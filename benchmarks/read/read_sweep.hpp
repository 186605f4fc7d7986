// The measurement of `penstock read`: the reads, the baseline and the ceiling of every tier with every number
// of threads.
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

// The results of one tier with one number of threads: repeats of the read and of the baseline. The i-th
// baseline repeat was measured directly before or after the i-th read repeat, in the same cache state.
struct ReadCell {
  size_t tier = 0;  // index of the tier in the sweep
  unsigned threads = 1;
  std::vector<RepeatFigures> repeats;
  std::vector<double> baseline_samples_per_s;
  std::string baseline_loop;       // name of the loop of the baseline: "blocking.2"
  bool has_probes = false;         // whether the probe series of the ceiling was measured
  double ceiling_bytes_per_s = 0;  // rate of the fastest probe or baseline repeat; 0: not measured
  std::string ceiling_probe;       // name of the fastest probe: "queued.2x16"
  Verdict verdict = Verdict::ok;   // the worst verdict that the cell has got so far
  std::string reason;
  uint64_t errors = 0;  // samples that were skipped in the repeats
  uint64_t errors_in_warm_up = 0;
  std::vector<std::string> first_errors;

  void judge(Verdict what, std::string_view why);
};

// Adds the metrics of the cell to the trial (see docs/reference/records.md, row `read`). `first` is the cell
// of the same tier with the first thread count of the sweep. The metric `scaling` is relative to it.
void record_cell(const ReadCell& cell, const ReadCell& first, const Tier& tier, const Manifest& manifest,
                 uint64_t tier_bytes_read, Trial& trial);

// Measures all tiers with all numbers of threads. All ranks sweep together: run() is a collective call, and
// the cells are equal on every rank. Borrows all constructor arguments. Only one thread may use it.
class ReadSweep {
 public:
  using Log = std::function<void(std::string_view text)>;

  // `warnings` is called with each text that a user should see while the sweep runs. It may be empty.
  ReadSweep(const std::vector<Tier*>& tiers, const Manifest& manifest, const SampleList& samples,
            const ReadOptions& options, Communicator& ranks, Progress* progress = nullptr,
            LiveCsv* live_csv = nullptr, Log warnings = {});

  // Opens the tiers, looks at the speed of each for a moment, and adds the parts of the sweep to the plan.
  // Then run() does only what the plan allows. Collective. Without this call there is no plan.
  Result<void> plan_time(TimePlan& plan);

  // Measures all cells. Fails if a tier cannot be prepared (ReadTier::open()). If a tier fails later, its
  // cells get a verdict that says why, and the sweep continues with the other tiers. After an interrupt the
  // sweep stops, and cells keep the results they have.
  Result<void> run();

  const std::vector<ReadCell>& cells() const { return cells_; }

  const ReadTier& tier(size_t index) const { return *tiers_[index]; }

 private:
  Result<void> open_tiers();
  double look(ReadTier& tier, unsigned threads, std::chrono::nanoseconds time);
  void estimate_pass_times(ReadTier& tier, std::vector<double>& pass_s, double& prepare_s);
  TimeRange ceiling_time(const ReadTier& tier, unsigned threads, double pass_s, double prepare_s,
                         bool empties_cache) const;
  bool begin_part(std::string_view part, const ReadCell& cell, std::string_view what);
  // The time of the warm-up, if it does not read a whole pass; else 0.
  std::chrono::nanoseconds warm_up_limit() const;
  bool warm_up_verifies() const;
  void warm_up(size_t index);
  void repeat_cell(ReadCell& cell, size_t repeat);
  void read_repeat(ReadCell& cell, size_t repeat);
  void baseline_repeat(ReadCell& cell);
  void probe_ceiling(ReadCell& cell);
  std::optional<RepeatFigures> measure_repeat(ReadCell& cell, RepeatPlan plan);
  static void raise_ceiling(ReadCell& cell, const RunTally& tally, std::string_view probe);
  std::span<ReadCell> cells_of(size_t tier);
  void log(const std::string& warning);
  void show_repeat(const ReadCell& cell, std::string_view what);

  const Manifest& manifest_;
  const SampleList& samples_;
  const ReadOptions& options_;
  ReadTeam team_;
  Progress* progress_;  // shows the progress; it advances by one for each repeat of a cell
  LiveCsv* live_csv_;
  const Log warnings_;
  std::vector<std::unique_ptr<ReadTier>> tiers_;
  std::vector<ReadCell> cells_;
  TimePlan* plan_ = nullptr;
  uint32_t repeats_measured_ = 0;  // how many repeats were reported to the profiler as spans
};

}  // namespace penstock
