// A cache state that the ranks of a job bring about together.
#pragma once

#include "datagen/cache/cache_control.hpp"
#include "io_backends/core/ranks/communicator.hpp"

namespace penstock {

// What is in a node's cache is one rank's to prepare, unless each has files of its own.
enum class WhoPrepares : std::uint8_t { one_a_node, every_rank };

struct PreparedTogether {
  Result<CacheOutcome> outcome;  // the same on every rank: the least flattering of those who prepared
  int signal = 0;                // that came to one of the ranks meanwhile; 0 for none
};

// Collective. With one rank: cache.prepare().
PreparedTogether prepare_together(Communicator& ranks, CacheControl& cache, WhoPrepares who);

// The less flattering of both, layer by layer.
void blend(CacheState& state, const CacheState& other);

}  // namespace penstock
