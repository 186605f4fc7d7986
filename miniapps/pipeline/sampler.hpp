// The order in which the samples of a corpus are used: a function of (seed, epoch, rank, position), with no
// state.
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

#include "io_backends/base/random.hpp"
#include "io_backends/base/result.hpp"

namespace penstock {

enum class Shuffle : std::uint8_t {
  none,    // as the manifest lists them; rank r of R takes every R-th sample from the r-th on
  local,   // each rank keeps its own part of the corpus (one run of neighbours) and permutes it anew each
           // epoch
  global,  // the whole corpus is permuted anew each epoch, the same on every rank, and each takes its part of
           // it
};
Result<Shuffle> parse_shuffle(std::string_view name);

// One epoch as one rank sees it. A value; any thread; O(1) memory whatever the size.
class EpochOrder {
 public:
  std::uint64_t size() const { return size_; }
  // Index in the manifest of the position-th sample, position < size(). Every index comes once over all
  // ranks.
  std::uint64_t at(std::uint64_t position) const {
    const std::uint64_t i = first_ + position * stride_;
    return offset_ + (permutation_ ? permutation_->at(i) : i);
  }

 private:
  friend class Sampler;
  std::uint64_t size_ = 0;
  std::uint64_t first_ = 0;  // position -> place in the permutation
  std::uint64_t stride_ = 1;
  std::uint64_t offset_ = 0;  // of this rank's part of the corpus
  std::optional<Permutation> permutation_;
};

// Every rank gets the same number of samples an epoch: samples / ranks, rounded down; the up to ranks - 1
// samples that are left over sit out that epoch (with Shuffle::global other ones each time). Immutable; any
// thread.
class Sampler {
 public:
  Sampler(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, int rank = 0, int ranks = 1);

  std::uint64_t per_epoch() const { return per_epoch_; }
  EpochOrder epoch(std::uint64_t number) const;

 private:
  std::uint64_t samples_;
  std::uint64_t per_epoch_;
  Shuffle shuffle_;
  std::uint64_t seed_;
  std::uint64_t rank_;
  std::uint64_t ranks_;
};

}  // namespace penstock
