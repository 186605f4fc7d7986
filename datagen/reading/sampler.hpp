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
    local,  // Each rank has a part of the corpus (neighbouring samples), in a new random order each epoch.
    // Takes the samples in the order of `none`, but through a buffer. A random entry of the buffer is used
    // and replaced by the next sample. At the end of the epoch the remaining entries are used.
    buffer,
    // The whole corpus is in a new random order each epoch. All ranks have the same order, and rank r of R
    // takes every R-th sample of it, starting with the r-th.
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
// The text from which parse_shuffle() makes `shuffle`; N is in digits.
std::string shuffle_text(const Shuffle& shuffle);

// Which samples one rank uses in one epoch, and in which order. Only one thread may use it. It needs constant
// memory for any corpus size, plus 8 bytes for each entry of the buffer. The buffer has at most as many
// entries as the epoch has samples.
class EpochOrder {
 public:
  uint64_t left() const { return size_ - position_; }
  // Returns the next sample, as its index in the manifest. Requires left() > 0. In an epoch each index is
  // returned at most once, on one rank only.
  uint64_t next();
  // Skips the next `count` samples, or all that are left if they are fewer. With Shuffle::buffer the time is
  // proportional to `count`, because the buffer must be filled as if the samples were used. With the other
  // kinds the time is constant.
  void skip(uint64_t count);

 private:
  friend class Sampler;
  uint64_t unshuffled(uint64_t position) const { return first_position_ + position * stride_; }
  uint64_t from_buffer(uint64_t position);

  uint64_t size_ = 0;
  uint64_t position_ = 0;        // position of the next sample
  uint64_t first_position_ = 0;  // this rank's first position in the order that all ranks share
  uint64_t stride_ = 1;
  uint64_t part_begin_ = 0;  // first sample of this rank's part of the corpus
  std::optional<Permutation> permutation_;
  std::optional<RandomStream> draws_;  // random numbers that choose which entry of the buffer is used
  std::vector<uint64_t> buffer_;
  uint64_t buffered_count_ = 0;  // how many positions have entered the buffer so far
};

// Makes the orders of all epochs for one rank. In each epoch, every rank gets samples / ranks samples,
// rounded down. The remaining samples, at most ranks - 1, are not used in that epoch. With Shuffle::global
// these are different samples in each epoch. Immutable, so any thread may use it.
class Sampler {
 public:
  Sampler(uint64_t samples, Shuffle shuffle, uint64_t seed, int rank = 0, int ranks = 1);

  uint64_t per_epoch() const { return per_epoch_; }
  // The rest of epoch `number`, after all ranks together have used its first `used` samples, each rank the
  // same number of them. With Shuffle::none and Shuffle::global, a different number of ranks may have used
  // them. With the other kinds the number of ranks must be the same as now, because each rank has its own
  // order.
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
