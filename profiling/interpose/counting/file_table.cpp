#include "profiling/interpose/counting/file_table.hpp"

#include <string.h>

#include <atomic>

#include "profiling/interpose/writer/private_memory.hpp"

namespace penstock::interpose {

namespace {
constexpr std::uint64_t kFirstSlots = 512;
constexpr std::uint64_t kManySlots = 1U << 20U;
}  // namespace

void FileTable::clear() noexcept {
  memset(marks_, 0, slot_count_);
  filled_ = 0;
}

bool FileTable::grow() noexcept {
  // All pages at once, and seldom: a program may open its files faster than pages come one by one.
  const bool many = slot_count_ >= kManySlots;
  const std::uint64_t count = slot_count_ == 0 ? kFirstSlots : slot_count_ * (many ? 2 : 4);
  auto* fresh = static_cast<std::uint64_t*>(
      private_memory(bytes_of(count), many ? Pages::when_touched : Pages::at_once));
  if (fresh == nullptr) {
    return false;
  }
  auto* marks = reinterpret_cast<std::uint8_t*>(fresh + count);
  for (std::uint64_t i = 0; i < slot_count_; ++i) {
    if (marks_[i] == 0) {
      continue;
    }
    // The tag holds as much of the hash as all but the largest tables need.
    const std::uint64_t slot = slots_[i];
    std::uint64_t hash = slot >> kPlaceBits;
    if (count > kTagMask + 1) {
      const penstock_counters& c = *at_place(slot);
      hash = mixed(c.file, layer_of(c));
    }
    std::uint64_t at = hash & (count - 1);
    while (marks[at] != 0) {
      at = (at + 1) & (count - 1);
    }
    fresh[at] = slot;
    marks[at] = marks_[i];
  }
  // In this order, for a handler that forks between them: the child clears that many marks.
  std::uint64_t* const before = slots_;
  const std::uint64_t before_count = slot_count_;
  slots_ = fresh;
  marks_ = marks;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  slot_count_ = count;
  std::atomic_signal_fence(std::memory_order_seq_cst);
  if (before != nullptr) {
    give_back_private_memory(before, bytes_of(before_count));
  }
  return true;
}

}  // namespace penstock::interpose
