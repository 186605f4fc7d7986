// The results of one run of reads or of a probe. One table of its figures defines how several tallies are
// joined, sent between ranks and recorded. A new figure needs a member and a row of that table.
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

// How to join and record one figure. Numbers are added. With `max`, the larger number counts if two runs were
// at the same time. Other types are merged by add() in run_tally.cpp.
struct RunFigure {
  bool max = false;  // join() takes the larger value, as for a time
  const MetricInfo* value = nullptr;
  const MetricInfo* rate = nullptr;  // the metric of the rate: this figure divided by `seconds`
  double RunTally::*seconds = nullptr;
  // If the figure is 0, `value` and `rate` are not recorded.
  bool unless_zero = false;
  // Metrics of a distribution, recorded if it has any values.
  std::span<const read_metrics::Percentile> percentiles = {};
};

// The figures of a run, without the ramp. A run returns it also after a failure, with what was measured until
// then.
struct RunTally {
  // Samples that were completely read, and decoded or verified if requested.
  std::uint64_t samples = 0;
  std::uint64_t bytes = 0;   // payload of these samples
  std::uint64_t errors = 0;  // samples that failed (skipped, or the one that ended the run)
  std::uint64_t wrong = 0;   // those of `errors` whose bytes do not match the manifest's checksum
  std::uint64_t passes = 0;  // whole passes that were given to threads
  // Seconds from the start (or the end of the ramp) to the last completion.
  double wall_s = 0;
  double elapsed_s = 0;                // as wall_s, including the ramp
  double first_done_s = 0;             // as wall_s, until the first thread had nothing left to read
  std::uint64_t first_done_bytes = 0;  // bytes that all threads had delivered at that time
  double stonewall_s = 0;              // as wall_s, until the last completion before the stonewall
  std::uint64_t stonewall_bytes = 0;   // bytes delivered at that time
  // Time of one sample, from before the open (in an open loop: from when it was due) until after the close.
  // It includes decoding and verification.
  Histogram latency_ns;
  Histogram late_ns;      // open loop: time from when a sample was due until before its open
  std::uint64_t due = 0;  // open loop that reached its time limit: samples that were due in open_s
  double open_s = 0;      // seconds in which `due` samples were due; wall_s is not shorter
  // Entry i has the bytes of the i-th second of wall_s. The last second may be shorter.
  std::vector<std::uint64_t> bytes_by_second;
  std::vector<std::string> first_errors;  // texts of the first errors, at most kErrorsNamed
  std::string first_wrong;                // text of the first error of `wrong`
  std::optional<Error> failure;           // the error that ended the run, or that prevented its start
  TimesByCall calls;               // times of the back end's calls, if it is traced; including the ramp
  std::vector<RankFigures> ranks;  // one entry for each rank, if several ran together (read_team.hpp)

  // The table of all figures: calls `visit` with the name, the member and the RunFigure of each.
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

  // Adds the tally of another thread or rank that ran at the same time.
  void join(const RunTally& other);
  // Adds a later run of the same cell. Times are added, and the series of seconds continues.
  void append(const RunTally& later);

  // Adds one sample of every metric of the table to the trial.
  void record(Trial& trial) const;

  double payload_rate() const;  // bytes per second of wall_s; 0 if wall_s is 0
  double sample_rate() const;
};

double per_second(double amount, double seconds);  // 0 if `seconds` is 0

}  // namespace penstock
