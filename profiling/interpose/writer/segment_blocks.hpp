// The blocks that kept calls go to. Their file has at most that many bytes of them
// (penstock_session_header.trace_limit); then the oldest give way, and what they held is counted as dropped.
#pragma once

#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

// PENSTOCK_PROFILE_TRACE_LIMIT where that is a number, or what is usual; 0: no limit.
std::uint64_t trace_limit_of_environment() noexcept;

// A block with room for a call, for the thread whose last one was `full` (null: it has none), `last_bytes`
// long. A new one as long as there may be more of them; else the one that became full before all others,
// emptied; where there is none, `full` itself, emptied. Null where there is no room for a first one.
//
// A block that is not full has a writer, or waits for one with the log of a thread that has ended: there are
// as many as threads at one time, and each may have one block (PENSTOCK_BLOCK_GRANULE) beyond the limit.
penstock_block* next_segment_block(penstock_block* full, std::uint64_t last_bytes) noexcept;

}  // namespace penstock::interpose
