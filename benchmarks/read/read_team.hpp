// The ranks of a job that measure together. With one rank every call is the plain thing.
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

// As a rank sends it to another.
Json packed(const RunTally& tally);
RunTally unpacked(const Json& json);

// Of all ranks that ran at the same time, each of which gets an entry of `ranks`. The bytes that the others
// had delivered when the first rank was done are computed from each rank's own rate up to the end of its
// first thread.
RunTally over_ranks(std::span<const RunTally> each);

// Collective: every rank makes the same calls in the same order, and what a call returns is the same on every
// rank, so that all decide alike. One thread.
class ReadTeam {
 public:
  explicit ReadTeam(Communicator& ranks) : ranks_(ranks) {}

  bool alone() const { return ranks_.size() == 1; }
  RankShare share(std::uint64_t shift) const;

  // Runs `mine` on every rank and joins the results: bytes, samples and latencies of all, the wall time of
  // the slowest, `ranks` one by one. The clocks start after a barrier. Where a repeat ends by time, rank 0's
  // figures so far decide how many passes all ranks add, so that every pass is read whole, by all.
  using Mine = std::function<RunTally(const ReadSpec&)>;
  RunTally run(const ReadSpec& spec, const Mine& mine);

  // prepare_together()
  Result<CacheOutcome> prepare(CacheControl& cache);

  std::uint64_t sum(std::uint64_t mine);                                // over the ranks
  std::optional<std::uint64_t> sum(std::optional<std::uint64_t> mine);  // absent where a rank has none
  bool any(bool mine);                                                  // on any rank

  // A rank was asked to stop. Looked at together, at the end of prepare() and of run(): a signal that
  // comes to one rank in between must not take it another way than the others.
  bool stopped() const;

 private:
  RunTally joined(const RunTally& mine);
  std::uint64_t reduced(std::uint64_t mine, Reduction how);

  Communicator& ranks_;
  bool stopped_ = false;
};

}  // namespace penstock
