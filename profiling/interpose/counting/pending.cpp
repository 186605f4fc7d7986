// A hash table with chains of indices.
//
// Threads: one at a time uses a table.
// Locks: the owner of the table holds its own lock in all functions (pending.hpp).
// Memory: allocate() takes all of it from the kernel at once, so nodes never move.
// A key that equals kFreeKey is stored as 0.
#include "profiling/interpose/counting/pending.hpp"

#include <bit>
#include <new>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/writer/private_memory.hpp"

namespace penstock::interpose {

void PendingTable::allocate(std::uint32_t room) noexcept {
  if (nodes_ != nullptr) {
    return;
  }
  bucket_bits_ = std::uint32_t(std::bit_width(room));
  const std::size_t bucket_count = std::size_t{1} << bucket_bits_;
  nodes_ = static_cast<Pending*>(private_memory((std::size_t{room} + 1) * sizeof(Pending)));
  buckets_ = static_cast<std::uint32_t*>(private_memory(bucket_count * sizeof(std::uint32_t)));
  room_ = nodes_ == nullptr || buckets_ == nullptr ? 0 : room;
}

void PendingTable::free_memory() noexcept {
  if (nodes_ != nullptr && buckets_ != nullptr) {
    free_private_memory(nodes_, (std::size_t{room_} + 1) * sizeof(Pending));
    free_private_memory(buckets_, (std::size_t{1} << bucket_bits_) * sizeof(std::uint32_t));
  }
  new (this) PendingTable;
}

std::uint32_t PendingTable::bucket_of(std::uint64_t key) const noexcept {
  return std::uint32_t(key * 0x9e3779b97f4a7c15U >> (64 - bucket_bits_));
}

std::uint32_t PendingTable::add(std::uint64_t key) noexcept {
  std::uint32_t index = first_free_;
  if (index != 0) {
    first_free_ = nodes_[index].next_in_bucket;
  } else if (used_nodes_ < room_) {
    index = ++used_nodes_;
  } else {
    return 0;
  }
  new (nodes_ + index) Pending;
  nodes_[index].key = key == kFreeKey ? 0 : key;
  std::uint32_t* last_link = buckets_ + bucket_of(nodes_[index].key);
  while (*last_link != 0) {
    last_link = &nodes_[*last_link].next_in_bucket;
  }
  *last_link = index;
  return index;
}

std::uint32_t PendingTable::find(std::uint64_t key) const noexcept {
  if (room_ == 0) {
    return 0;
  }
  key = key == kFreeKey ? 0 : key;
  std::uint32_t index = buckets_[bucket_of(key)];
  while (index != 0 && nodes_[index].key != key) {
    index = nodes_[index].next_in_bucket;
  }
  return index;
}

std::uint32_t PendingTable::find_after(std::uint32_t index) const noexcept {
  const std::uint64_t key = nodes_[index].key;
  do {
    index = nodes_[index].next_in_bucket;
  } while (index != 0 && nodes_[index].key != key);
  return index;
}

void PendingTable::remove(std::uint32_t index) noexcept {
  Pending& removed = nodes_[index];
  std::uint32_t* link = buckets_ + bucket_of(removed.key);
  while (*link != index) {
    link = &nodes_[*link].next_in_bucket;
  }
  *link = removed.next_in_bucket;
  if (removed.previous_in_chain != 0) {
    nodes_[removed.previous_in_chain].next_in_chain = removed.next_in_chain;
  }
  if (removed.next_in_chain != 0) {
    nodes_[removed.next_in_chain].previous_in_chain = removed.previous_in_chain;
  }
  removed.key = kFreeKey;
  removed.next_in_bucket = first_free_;
  first_free_ = index;
}

HandleFile file_of(ThreadLog& log, int fd) noexcept {
  const Description* description = known_description(log, fd);
  return description == nullptr ? HandleFile{} : HandleFile{description->file, description->name};
}

}  // namespace penstock::interpose
