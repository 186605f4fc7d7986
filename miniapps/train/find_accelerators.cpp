#include "miniapps/train/find_accelerators.hpp"

#include <algorithm>

namespace penstock {

Result<std::uint64_t> most_fed(std::uint64_t most, const FeedsThem& feeds) {
  std::uint64_t fed = 0;
  std::uint64_t starved = most + 1;
  while (starved - fed > 1) {
    const bool climbing = starved == most + 1;
    const std::uint64_t next =
        climbing ? std::min(std::max<std::uint64_t>(1, 2 * fed), most) : fed + (starved - fed) / 2;
    PENSTOCK_ASSIGN(bool enough, feeds(next));
    if (!enough) {  // one unlucky run is no limit
      PENSTOCK_ASSIGN(enough, feeds(next));
    }
    (enough ? fed : starved) = next;
  }
  return fed;
}

Result<std::uint64_t> most_fed_in_a_row(std::uint64_t from, unsigned in_a_row, const FeedsThem& feeds) {
  for (std::uint64_t accelerators = from; accelerators > 0; --accelerators) {
    unsigned times = 0;
    while (times < in_a_row) {
      PENSTOCK_ASSIGN(const bool enough, feeds(accelerators));
      if (!enough) break;
      ++times;
    }
    if (times == in_a_row) return accelerators;
  }
  return std::uint64_t{0};
}

}  // namespace penstock
