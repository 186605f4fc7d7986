// A hash table with chains of indices.
//
// Threads: one at a time.
// Locks: the owner of the table holds its own lock in all functions (pending.hpp).
// Memory: make() takes all of it from the kernel at once, so nodes never move.
// A key that equals kFree is stored as 0.
#include "profiling/interpose/counting/pending.hpp"

#include <bit>
#include <new>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/writer/private_memory.hpp"

namespace penstock::interpose {

void PendingTable::make(std::uint32_t room) noexcept {
  if (nodes_ != nullptr) {
    return;
  }
  bits_ = static_cast<std::uint32_t>(std::bit_width(room));
  const std::size_t heads = std::size_t{1} << bits_;
  nodes_ = static_cast<Pending*>(private_memory((std::size_t{room} + 1) * sizeof(Pending)));
  buckets_ = static_cast<std::uint32_t*>(private_memory(heads * sizeof(std::uint32_t)));
  room_ = nodes_ == nullptr || buckets_ == nullptr ? 0 : room;
}

void PendingTable::free_memory() noexcept {
  if (nodes_ != nullptr && buckets_ != nullptr) {
    free_private_memory(nodes_, (std::size_t{room_} + 1) * sizeof(Pending));
    free_private_memory(buckets_, (std::size_t{1} << bits_) * sizeof(std::uint32_t));
  }
  new (this) PendingTable;
}

std::uint32_t PendingTable::bucket(std::uint64_t key) const noexcept {
  return static_cast<std::uint32_t>(key * 0x9e3779b97f4a7c15U >> (64 - bits_));
}

std::uint32_t PendingTable::add(std::uint64_t key) noexcept {
  std::uint32_t index = free_;
  if (index != 0) {
    free_ = nodes_[index].next;
  } else if (used_ < room_) {
    index = ++used_;
  } else {
    return 0;
  }
  new (nodes_ + index) Pending;
  nodes_[index].key = key == kFree ? 0 : key;
  std::uint32_t* end = buckets_ + bucket(nodes_[index].key);
  while (*end != 0) {
    end = &nodes_[*end].next;
  }
  *end = index;
  return index;
}

std::uint32_t PendingTable::find(std::uint64_t key) const noexcept {
  if (room_ == 0) {
    return 0;
  }
  key = key == kFree ? 0 : key;
  std::uint32_t index = buckets_[bucket(key)];
  while (index != 0 && nodes_[index].key != key) {
    index = nodes_[index].next;
  }
  return index;
}

std::uint32_t PendingTable::find_after(std::uint32_t index) const noexcept {
  const std::uint64_t key = nodes_[index].key;
  do {
    index = nodes_[index].next;
  } while (index != 0 && nodes_[index].key != key);
  return index;
}

void PendingTable::remove(std::uint32_t index) noexcept {
  Pending& removed = nodes_[index];
  std::uint32_t* at = buckets_ + bucket(removed.key);
  while (*at != index) {
    at = &nodes_[*at].next;
  }
  *at = removed.next;
  if (removed.previous_in_chain != 0) {
    nodes_[removed.previous_in_chain].next_in_chain = removed.next_in_chain;
  }
  if (removed.next_in_chain != 0) {
    nodes_[removed.next_in_chain].previous_in_chain = removed.previous_in_chain;
  }
  removed.key = kFree;
  removed.next = free_;
  free_ = index;
}

HandleFile file_of(ThreadLog& log, int fd) noexcept {
  const Description* description = known_description(log, fd);
  return description == nullptr ? HandleFile{} : HandleFile{description->file, description->name};
}

}  // namespace penstock::interpose
