#include "profiling/interpose/writer/segment_blocks.hpp"

#include "profiling/interpose/writer/session_file.hpp"
#include "profiling/memory_fence.hpp"

namespace penstock::interpose {

namespace {

constexpr std::uint64_t kUsualLimit = 256U << 20U;
constexpr std::uint64_t kLeastLimit = 8 * std::uint64_t{PENSTOCK_BLOCK_GRANULE};
constexpr std::uint64_t kMostBlock = 256U << 10U;
constexpr std::uint64_t kBlocksOfALimit = 16;  // at least: so much of it is lost at a time

// How long the block is to be: twice the last, as long as many of that length are within the limit.
std::uint64_t wanted_bytes(std::uint64_t last_bytes, std::uint64_t limit) noexcept {
  std::uint64_t most = kMostBlock;
  if (limit != 0 && limit / kBlocksOfALimit < most) {
    most = limit / kBlocksOfALimit / PENSTOCK_BLOCK_GRANULE * PENSTOCK_BLOCK_GRANULE;
  }
  const std::uint64_t twice = last_bytes == 0 ? PENSTOCK_BLOCK_GRANULE : last_bytes * 2;
  const std::uint64_t want = twice > most ? most : twice;
  return want < PENSTOCK_BLOCK_GRANULE ? PENSTOCK_BLOCK_GRANULE : want;
}

penstock_block* add(std::uint64_t bytes) noexcept {
  penstock_block* block =
      add_block(PENSTOCK_BLOCK_SEGMENTS, sizeof(penstock_segment), bytes - sizeof(penstock_block));
  if (block != nullptr) {
    file.segment_bytes += block->bytes;
  }
  return block;
}

void append_full(penstock_block* block) noexcept {
  const std::uint64_t at = offset_in_session(block);
  block->next = 0;
  if (file.newest_full != 0) {
    at_offset<penstock_block>(file.newest_full)->next = at;
  } else {
    file.oldest_full = at;
  }
  file.newest_full = at;
}

penstock_block* take_oldest() noexcept {
  auto* block = at_offset<penstock_block>(file.oldest_full);
  file.oldest_full = block->next;
  if (file.oldest_full == 0) {
    file.newest_full = 0;
  }
  block->next = 0;
  return block;
}

// Who reads meanwhile sees no call that is half one and half another: nothing is there before `renewed` says
// so, and it says so before anything else is there.
void empty(penstock_block* block) noexcept {
  count_drop(session.header->dropped_segments, block->used / sizeof(penstock_segment));
  __atomic_store_n(&block->used, std::uint64_t{0}, __ATOMIC_RELEASE);
  memory_fence(std::memory_order_seq_cst);
  __atomic_store_n(&block->renewed, block->renewed + 1, __ATOMIC_RELEASE);
  memory_fence(std::memory_order_seq_cst);
}

}  // namespace

std::uint64_t trace_limit_of_environment() noexcept {
  return bytes_of_environment("PENSTOCK_PROFILE_TRACE_LIMIT", kUsualLimit);
}

penstock_block* next_segment_block(penstock_block* full, std::uint64_t last_bytes) noexcept {
  const Hold hold(file_lock);
  if (!hold.held() || !is_own_session()) {
    return nullptr;
  }
  std::uint64_t limit = session.header->trace_limit;
  limit = limit != 0 && limit < kLeastLimit ? kLeastLimit : limit;
  const std::uint64_t want = wanted_bytes(last_bytes, limit);
  penstock_block* block = limit == 0 || file.segment_bytes + want <= limit ? add(want) : nullptr;
  if (block == nullptr && file.oldest_full == 0) {
    if (full == nullptr) {
      return add(PENSTOCK_BLOCK_GRANULE);
    }
    empty(full);
    return full;
  }
  if (full != nullptr) {
    append_full(full);
  }
  if (block == nullptr) {
    block = take_oldest();
    empty(block);
  }
  return block;
}

}  // namespace penstock::interpose
