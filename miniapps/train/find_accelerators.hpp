// How many accelerators an input pipeline feeds: the search for the most that it keeps busy.
#pragma once

#include <cstdint>
#include <functional>

#include "io_backends/core/result.hpp"

namespace penstock {

// Whether a run with that many accelerators kept them busy.
using FeedsThem = std::function<Result<bool>(std::uint64_t accelerators)>;

// The most in 0 to `most` of which `feeds` says yes, if it says no to all above that: asked for each of 1, 2,
// 4, ... until a no, and then for the middle of what is left. A no must be said twice: on a busy machine one
// run may be unlucky.
Result<std::uint64_t> most_fed(std::uint64_t most, const FeedsThem& feeds);

// From there on downwards, the first that is fed `in_a_row` times without a miss; 0 where not even one is.
Result<std::uint64_t> most_fed_in_a_row(std::uint64_t from, unsigned in_a_row, const FeedsThem& feeds);

}  // namespace penstock
