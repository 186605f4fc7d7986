// The order in which the samples of a corpus are used: a function of (seed, epoch, rank) alone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/random.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

struct Shuffle {
  enum class Kind : std::uint8_t {
    none,    // as the manifest lists them; rank r of R takes every R-th sample from the r-th on
    local,   // each rank keeps its own part of the corpus (one run of neighbours) and permutes it anew each
             // epoch
    buffer,  // what `none` gives goes through a buffer: each time one of its places, drawn at random, is used
             // and filled by the next sample; at the end it runs empty
    global,  // the whole corpus is permuted anew each epoch, the same on every rank, and each takes its part
             // of it
  };
  static const Shuffle none;
  static const Shuffle local;
  static const Shuffle global;
  static constexpr Shuffle buffer(std::uint64_t places) { return {Kind::buffer, places}; }  // places > 0

  Kind kind = Kind::none;
  std::uint64_t places = 0;  // of the buffer; 0 for the other kinds
  friend constexpr bool operator==(const Shuffle&, const Shuffle&) = default;
};
inline constexpr Shuffle Shuffle::none{Shuffle::Kind::none};
inline constexpr Shuffle Shuffle::local{Shuffle::Kind::local};
inline constexpr Shuffle Shuffle::global{Shuffle::Kind::global};

// "none", "local", "buffer:N" (N a count from 1 on, as "10k") or "global"; all else is invalid_argument.
Result<Shuffle> parse_shuffle(std::string_view text);
std::string shuffle_text(const Shuffle& shuffle);  // what parse_shuffle() reads, N in digits

// One epoch as one rank sees it, from its first sample to its last. One thread. O(1) memory whatever the
// size, and 8 bytes for each place of a buffer, which has no more places than the epoch has samples.
class EpochOrder {
 public:
  std::uint64_t left() const { return size_ - position_; }
  // Index in the manifest of the next sample; left() > 0. Every index comes once over all ranks.
  std::uint64_t next();
  // Leaves out the next `count`, all that are left at most. At once, but through a buffer one by one.
  void skip(std::uint64_t count);

 private:
  friend class Sampler;
  std::uint64_t unshuffled(std::uint64_t position) const { return first_ + position * stride_; }
  std::uint64_t from_buffer(std::uint64_t position);

  std::uint64_t size_ = 0;
  std::uint64_t position_ = 0;  // of the next sample
  std::uint64_t first_ = 0;     // position -> place in the permutation
  std::uint64_t stride_ = 1;
  std::uint64_t offset_ = 0;  // of this rank's part of the corpus
  std::optional<Permutation> permutation_;
  std::optional<RandomStream> draws_;  // from the buffer
  std::vector<std::uint64_t> buffer_;
  std::uint64_t buffered_ = 0;  // positions that are in the buffer, or have been
};

// Every rank gets the same number of samples an epoch: samples / ranks, rounded down; the up to ranks - 1
// samples that are left over sit out that epoch (with Shuffle::global other ones each time). Immutable; any
// thread.
class Sampler {
 public:
  Sampler(std::uint64_t samples, Shuffle shuffle, std::uint64_t seed, int rank = 0, int ranks = 1);

  std::uint64_t per_epoch() const { return per_epoch_; }
  // What is left of an epoch of which all ranks together have used the first `used` samples, each as many.
  // Without a shuffle and with Shuffle::global these may have been another number of ranks; with the others,
  // where each rank has an order of its own, the same number.
  EpochOrder epoch(std::uint64_t number, std::uint64_t used = 0) const;

 private:
  std::uint64_t samples_;
  std::uint64_t per_epoch_;
  Shuffle shuffle_;
  std::uint64_t seed_;
  std::uint64_t rank_;
  std::uint64_t ranks_;
};

}  // namespace penstock
