// The order in which a training uses the samples of a corpus. It depends only on (seed, epoch, rank).
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
  enum class Kind : uint8_t {
    none,   // the order of the manifest; rank r of R takes every R-th sample, starting with the r-th
    local,  // Each rank has one part of the corpus (neighbouring samples) and permutes it again each epoch.
    // The samples of `none` go through a buffer. Each time a random entry is used and replaced by the next
    // sample. At the end of the epoch the buffer is emptied.
    buffer,
    // The whole corpus is permuted again each epoch, equally on every rank, and each rank takes its part.
    global,
  };
  static const Shuffle none;
  static const Shuffle local;
  static const Shuffle global;
  static constexpr Shuffle buffer(uint64_t entries) { return {Kind::buffer, entries}; }  // entries > 0

  Kind kind = Kind::none;
  uint64_t buffer_entries = 0;  // entries of the buffer; 0 for the other kinds
  friend constexpr bool operator==(const Shuffle&, const Shuffle&) = default;
};
inline constexpr Shuffle Shuffle::none{Shuffle::Kind::none};
inline constexpr Shuffle Shuffle::local{Shuffle::Kind::local};
inline constexpr Shuffle Shuffle::global{Shuffle::Kind::global};

// Parses "none", "local", "buffer:N" (N at least 1, for example "10k") or "global". Other texts fail with
// invalid_argument.
Result<Shuffle> parse_shuffle(std::string_view text);
std::string shuffle_text(const Shuffle& shuffle);  // the text for parse_shuffle(), with N in digits

// The samples of one rank in one epoch, from first to last. One thread. It needs constant memory for any
// corpus size, plus 8 bytes for each entry of the buffer. The buffer has at most as many entries as the epoch
// has samples.
class EpochOrder {
 public:
  uint64_t left() const { return size_ - position_; }
  // Index in the manifest of the next sample. Requires left() > 0. Over all ranks, no index is returned twice
  // in an epoch.
  uint64_t next();
  // Skips the next `count` samples, at most left(). This takes constant time, except with a buffer, where it
  // takes time for each sample.
  void skip(uint64_t count);

 private:
  friend class Sampler;
  uint64_t unshuffled(uint64_t position) const { return first_position_ + position * stride_; }
  uint64_t from_buffer(uint64_t position);

  uint64_t size_ = 0;
  uint64_t position_ = 0;        // position of the next sample
  uint64_t first_position_ = 0;  // the first position in the permutation
  uint64_t stride_ = 1;
  uint64_t part_begin_ = 0;  // first sample of this rank's part of the corpus
  std::optional<Permutation> permutation_;
  std::optional<RandomStream> draws_;  // random numbers that choose entries of the buffer
  std::vector<uint64_t> buffer_;
  uint64_t buffered_count_ = 0;  // number of positions that were put into the buffer
};

// Makes the orders of all epochs for one rank. Every rank gets samples / ranks samples in an epoch, rounded
// down. The remaining samples, at most ranks - 1, are not used in that epoch. With Shuffle::global they are
// different ones in each epoch. Immutable, so any thread may use it.
class Sampler {
 public:
  Sampler(uint64_t samples, Shuffle shuffle, uint64_t seed, int rank = 0, int ranks = 1);

  uint64_t per_epoch() const { return per_epoch_; }
  // The rest of an epoch of which all ranks together have used the first `used` samples, equally many each.
  // With Shuffle::none and Shuffle::global the number of ranks may have changed since. With the other kinds
  // each rank has its own order, so the number of ranks must be the same.
  EpochOrder epoch(uint64_t number, uint64_t used = 0) const;

 private:
  uint64_t samples_;
  uint64_t per_epoch_;
  Shuffle shuffle_;
  uint64_t seed_;
  uint64_t rank_;
  uint64_t ranks_;
};

}  // namespace penstock
