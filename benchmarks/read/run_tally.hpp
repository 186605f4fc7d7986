// What one run of reads or of a probe delivered. One table of its figures says how those of several runs
// become one, travel between ranks and are recorded. A new figure is a member and a row of that table.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "benchmarks/read/read_metrics.hpp"
#include "io_backends/core/histogram.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/decorators/traced.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/record/record.hpp"
#include "results/record/trial.hpp"

namespace penstock {

struct RunTally;

// What is done with a figure. Numbers add up, also those of runs at the same time unless `max`; other types
// are merged (add() in run_tally.cpp).
struct RunFigure {
  bool max = false;  // of runs at the same time the largest counts: a time
  const MetricInfo* value = nullptr;
  const MetricInfo* rate = nullptr;  // a second of `seconds`
  double RunTally::*seconds = nullptr;
  bool unless_zero = false;                                    // of value and rate
  std::span<const read_metrics::Percentile> percentiles = {};  // of a distribution that has any
};

// Ramp excluded. It always comes back, also after a failure: what was measured stays measured.
struct RunTally {
  std::uint64_t samples = 0;           // delivered: read whole, and decoded or verified where asked for
  std::uint64_t bytes = 0;             // payload of those
  std::uint64_t errors = 0;            // samples that failed and were skipped (or ended the run)
  std::uint64_t wrong = 0;             // of those: bytes that differ from the manifest's checksum
  std::uint64_t passes = 0;            // whole passes given out
  double wall_s = 0;                   // from the start (or the end of the ramp) to the last completion
  double elapsed_s = 0;                // as wall_s, with the ramp
  double first_done_s = 0;             // ... to the moment the first thread found nothing more to do
  std::uint64_t first_done_bytes = 0;  // delivered by all threads by then
  double stonewall_s = 0;              // ... to the last completion before the stonewall
  std::uint64_t stonewall_bytes = 0;   // delivered by then
  Histogram latency_ns;   // a sample: from before open, or when it was due, to after close, decode and verify
                          // included
  Histogram late_ns;      // of an open loop: from when it was due to before open
  std::uint64_t due = 0;  // of an open loop with a time limit that was reached: samples that were due, and
  double open_s = 0;      // in how long; wall_s is no shorter
  std::vector<std::uint64_t> bytes_by_second;  // [i]: in the i-th second of wall_s; the last may be cut short
  std::vector<std::string> first_errors;       // at most kErrorsNamed
  std::string first_wrong;                     // what is said of the first of `wrong`
  std::optional<Error> failure;    // ended the run (skip_errors is off), or nothing could be started
  TimesByCall calls;               // of the back end, where it is traced; ramp included
  std::vector<RankFigures> ranks;  // where several ranks ran together (read_team.hpp)

  // The table: name, member and RunFigure of every figure.
  template <class Visit>
  static constexpr void figures(Visit&& visit) {
    using T = RunTally;
    using namespace read_metrics;
    visit("samples", &T::samples, {.rate = &kSampleRate, .seconds = &T::wall_s});
    visit("bytes", &T::bytes, {.value = &kPayload, .rate = &kPayloadRate, .seconds = &T::wall_s});
    visit("errors", &T::errors, {});
    visit("wrong", &T::wrong, {});
    visit("passes", &T::passes, {.max = true});
    visit("wall_s", &T::wall_s, {.max = true, .value = &kWall});
    visit("elapsed_s", &T::elapsed_s, {.max = true});
    visit("first_done_s", &T::first_done_s, {.max = true});
    visit("first_done_bytes", &T::first_done_bytes, {.rate = &kFirstDoneRate, .seconds = &T::first_done_s});
    visit("stonewall_s", &T::stonewall_s, {.max = true});
    visit("stonewall_bytes", &T::stonewall_bytes,
          {.rate = &kStonewallRate, .seconds = &T::stonewall_s, .unless_zero = true});
    visit("latency_ns", &T::latency_ns, {.percentiles = kOfLatency});
    visit("late_ns", &T::late_ns, {.percentiles = kOfLateness});
    visit("due", &T::due, {.rate = &kOfferedRate, .seconds = &T::open_s, .unless_zero = true});
    visit("open_s", &T::open_s, {.max = true});
    visit("bytes_by_second", &T::bytes_by_second, {});
    visit("first_errors", &T::first_errors, {});
    visit("first_wrong", &T::first_wrong, {});
    visit("failure", &T::failure, {});
    visit("calls", &T::calls, {});
    visit("ranks", &T::ranks, {});
  }

  static constexpr std::size_t kErrorsNamed = 5;

  // Adds what ran at the same time, by another thread.
  void join(const RunTally& other);
  // Adds another run of the same cell that came after this one: times and seconds go on.
  void append(const RunTally& later);

  // One sample of every metric of the table.
  void record(Trial& trial) const;

  double payload_rate() const;  // bytes a second of wall_s; 0 where no time went by
  double sample_rate() const;
};

double per_second(double amount, double seconds);  // 0 where no time went by

}  // namespace penstock
