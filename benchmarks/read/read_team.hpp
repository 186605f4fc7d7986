// The ranks of a job that measure together. With one rank every call does its work without communication.
#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <span>

#include "benchmarks/read/read_engine.hpp"
#include "datagen/cache/cache_control.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Converts a tally to JSON for another rank, and back.
Json tally_json(const RunTally& tally);
RunTally tally_from_json(const Json& json);

// Joins the tallies of all ranks, which ran at the same time. RunTally::ranks of the result has an entry for
// each rank.
// `first_done_bytes` of the result is an estimate of how much all ranks together had read when the first rank
// was done. It assumes that each rank read at a constant rate until its own first_done_s.
RunTally join_over_ranks(std::span<const RunTally> rank_tallies);

// The collective calls of one rank: every rank must make the same calls in the same order. A call returns the
// same value on every rank, so that all ranks take the same decisions. Only one thread may use it.
class ReadTeam {
 public:
  explicit ReadTeam(Communicator& ranks) : ranks_(ranks) {}

  bool is_single_rank() const { return ranks_.size() == 1; }
  RankShare share(uint64_t shift) const;

  // Runs `own_run` on every rank at the same time, after a barrier, and joins the results. The joined tally
  // has the bytes, samples and latencies of all ranks, and the wall time of the slowest rank. Its member
  // `ranks` has one entry for each rank.
  // With Passes::shortest_time, own_run() may be called several times. After each call the joined figures
  // decide how many more passes are needed. All ranks then read that number of passes, so every rank reads
  // every pass completely.
  using OwnRun = std::function<RunTally(const ReadSpec&)>;
  RunTally run(const ReadSpec& spec, const OwnRun& own_run);

  // Prepares the cache on all ranks, by prepare_together() (cache_control.hpp).
  Result<CacheOutcome> prepare(CacheControl& cache);

  Result<void> all_ok(const Result<void>& mine);  // returns the error of the lowest rank that has one
  uint64_t sum(uint64_t mine);                    // the sum over all ranks
  std::optional<uint64_t> sum(std::optional<uint64_t> mine);  // absent if a rank has no value
  bool any_rank(bool mine);                                   // whether `mine` is true on any rank

  // Whether any rank was asked to stop (Ctrl-C). The ranks tell each other only at the end of prepare() and
  // of run(). Between these, a rank that got the signal must go on like the others.
  bool stopped() const;

 private:
  RunTally join_tallies(const RunTally& mine);
  uint64_t reduce(uint64_t mine, Reduction how);

  Communicator& ranks_;
  bool stopped_ = false;
};

}  // namespace penstock
