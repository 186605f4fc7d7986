// The ranks of a job that measure together: a repeat is passes, each in the cache state that was asked for,
// until they have lasted long enough. With one rank every call is the plain thing.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "benchmarks/read/read_engine.hpp"
#include "datagen/cache/cache_control.hpp"
#include "datagen/cache/prepare_together.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/tiers/tier.hpp"
#include "results/record/record.hpp"

namespace penstock {

struct RepeatPlan {
  std::string what{};  // for the progress line: "reading"
  ReadSpec spec{};     // of the whole repeat; its end does not count the ramp
  std::function<RunTally(const ReadSpec& pass, const ReadObserver& observer)> run{};
  ReadObserver observer{};                            // may be empty; counts from the start of the repeat
  std::function<void(std::string_view what)> note{};  // may be empty
};

struct RepeatFigures {
  RunTally tally;
  CacheState cache;               // before the first pass
  Verdict verdict = Verdict::ok;  // not_cold or not_warm, if that is what any pass was
  std::string reason;
  std::uint64_t read_call_bytes = 0;          // that crossed the back end's seam
  std::optional<std::uint64_t> device_bytes;  // that came from the device or server for the ranks
};

// Collective: every rank makes the same calls in the same order, and what a call returns is the same on every
// rank, so that all decide alike. One thread.
class ReadTeam {
 public:
  explicit ReadTeam(Communicator& ranks, WhoPrepares who_prepares = WhoPrepares::one_a_node)
      : ranks_(ranks), who_prepares_(who_prepares) {}

  bool alone() const { return ranks_.size() == 1; }
  RankShare share(std::uint64_t shift) const;

  // Runs `mine` on every rank and joins the results: bytes, samples and latencies of all, the wall time of
  // the slowest, `ranks` one by one. The clocks start after a barrier. Where a repeat ends by time, rank 0's
  // figures so far decide how many passes all ranks add, so that every pass is read whole, by all.
  using Mine = std::function<RunTally(const ReadSpec&)>;
  RunTally run(const ReadSpec& spec, const Mine& mine);

  // Prepares, runs, and does so again while time is left to fill: only files that were evicted take more than
  // one turn, since their passes must be evicted in between. What is not timed may take ten times as long as
  // what is, and half a minute, before the repeat ends as it is. Absent when interrupted before anything was
  // measured.
  std::optional<RepeatFigures> repeat(Tier& tier, CacheControl& cache, const RepeatPlan& plan);

  std::uint64_t sum(std::uint64_t mine);  // over the ranks
  bool any(bool mine);                    // on any rank

  // A rank was asked to stop. Looked at together, at the end of a preparation and of run(): a signal that
  // comes to one rank in between must not take it another way than the others.
  bool stopped() const;

 private:
  // The state is the least flattering of those who prepared.
  Result<CacheOutcome> prepare(CacheControl& cache);
  std::optional<std::uint64_t> sum(std::optional<std::uint64_t> mine);  // absent where a rank has none
  RunTally joined(const RunTally& mine);
  std::uint64_t reduced(std::uint64_t mine, Reduction how);

  Communicator& ranks_;
  const WhoPrepares who_prepares_;
  bool stopped_ = false;
};

}  // namespace penstock
