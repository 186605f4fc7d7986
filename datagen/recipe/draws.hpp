// Draws random numbers in sequence, for code that never needs the n-th number alone.
#pragma once

#include <cstdint>

#include "io_backends/core/random.hpp"

namespace penstock {

// The numbers of one stream in sequence. Copyable.
class Draws {
 public:
  explicit Draws(RandomStream stream) : stream_(stream) {}
  // A number in [low, high].
  int between(int low, int high) {
    return low + static_cast<int>(stream_.below(next_++, static_cast<std::uint64_t>(high - low) + 1));
  }
  bool percent(int chance) { return between(0, 99) < chance; }
  double uniform() { return stream_.uniform(next_++); }

 private:
  RandomStream stream_;
  std::uint64_t next_ = 0;
};

}  // namespace penstock
