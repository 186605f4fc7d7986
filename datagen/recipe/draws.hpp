// Draws random numbers one after another, for code that does not need to know which position in its stream a
// number has.
#pragma once

#include <cstdint>

#include "io_backends/core/random.hpp"

namespace penstock {

// Gives the numbers of one stream one after another. A copy of this object continues with the same number as
// the object itself.
class Draws {
 public:
  explicit Draws(RandomStream stream) : stream_(stream) {}
  // A number from `low` to `high`, both included.
  int between(int low, int high) { return low + int(stream_.below(next_draw_++, uint64_t(high - low) + 1)); }
  bool percent(int chance) { return between(0, 99) < chance; }
  double uniform() { return stream_.uniform(next_draw_++); }

 private:
  RandomStream stream_;
  uint64_t next_draw_ = 0;
};

}  // namespace penstock
