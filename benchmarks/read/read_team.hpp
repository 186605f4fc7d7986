// The ranks of a job that read one corpus together. With one rank every call is the plain thing.
#pragma once

#include <cstdint>
#include <functional>

#include "benchmarks/read/read_engine.hpp"
#include "datagen/cache/prepare_together.hpp"
#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {

// Collective: every rank makes the same calls in the same order, and what a call returns is the same on every
// rank, so that all decide alike. One thread.
class ReadTeam {
 public:
  explicit ReadTeam(Communicator& ranks, WhoPrepares who_prepares = WhoPrepares::one_a_node)
      : ranks_(ranks), who_prepares_(who_prepares) {}

  bool alone() const { return ranks_.size() == 1; }
  RankShare share(std::uint64_t shift) const;

  // Runs `mine` on every rank, the clocks started behind a barrier, and joins what they did: bytes, samples
  // and latencies of all, the wall of the slowest, `ranks` one by one. Where the repeat ends by time,
  // rank 0's figures so far say how many passes all of them add, so that every pass is read whole, by all.
  using Mine = std::function<RunTally(const ReadSpec&)>;
  RunTally run(const ReadSpec& spec, const Mine& mine);

  // The state is the least flattering of those who prepared.
  Result<CacheOutcome> prepare(CacheControl& cache);

  // Sums over the ranks; absent where a rank has none.
  std::uint64_t sum(std::uint64_t mine);
  std::optional<std::uint64_t> sum(std::optional<std::uint64_t> mine);
  bool any(bool mine);  // on any rank

  // A rank was asked to stop. Looked at together, at the end of prepare() and of run(): a signal that comes
  // to one rank in between must not take it another way than the others.
  bool stopped() const;

 private:
  RunTally joined(const RunTally& mine);
  std::uint64_t reduced(std::uint64_t mine, Reduction how);

  Communicator& ranks_;
  const WhoPrepares who_prepares_;
  bool stopped_ = false;
};

}  // namespace penstock
