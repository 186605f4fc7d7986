// The table of operations in flight: a hash table whose buckets are linked lists of indices.
//
// Threads: only one thread at a time may use a table.
// Locks: the caller of each function holds the lock of the table's owner (pending.hpp).
// Memory: allocate() takes all of it from the kernel at once, so nodes never move.
// kFreeKey marks free entries, so a key that equals it is stored as 0.
#include "profiling/interpose/counting/pending.hpp"

#include <bit>
#include <new>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/writer/private_memory.hpp"

namespace penstock::interpose {

void PendingTable::allocate(uint32_t capacity) noexcept {
  if (nodes_ != nullptr) {
    return;
  }
  bucket_bits_ = uint32_t(std::bit_width(capacity));
  const size_t bucket_count = size_t{1} << bucket_bits_;
  nodes_ = static_cast<Pending*>(private_memory((size_t{capacity} + 1) * sizeof(Pending)));
  buckets_ = static_cast<uint32_t*>(private_memory(bucket_count * sizeof(uint32_t)));
  capacity_ = nodes_ == nullptr || buckets_ == nullptr ? 0 : capacity;
}

void PendingTable::free_memory() noexcept {
  if (nodes_ != nullptr && buckets_ != nullptr) {
    free_private_memory(nodes_, (size_t{capacity_} + 1) * sizeof(Pending));
    free_private_memory(buckets_, (size_t{1} << bucket_bits_) * sizeof(uint32_t));
  }
  new (this) PendingTable;
}

uint32_t PendingTable::bucket_of(uint64_t key) const noexcept {
  return uint32_t(key * 0x9e3779b97f4a7c15U >> (64 - bucket_bits_));
}

uint32_t PendingTable::add(uint64_t key) noexcept {
  uint32_t index = first_free_;
  if (index != 0) {
    first_free_ = nodes_[index].next_in_bucket;
  } else if (used_nodes_ < capacity_) {
    index = ++used_nodes_;
  } else {
    return 0;
  }
  new (nodes_ + index) Pending;
  nodes_[index].key = key == kFreeKey ? 0 : key;
  uint32_t* last_link = buckets_ + bucket_of(nodes_[index].key);
  while (*last_link != 0) {
    last_link = &nodes_[*last_link].next_in_bucket;
  }
  *last_link = index;
  return index;
}

uint32_t PendingTable::find(uint64_t key) const noexcept {
  if (capacity_ == 0) {
    return 0;
  }
  key = key == kFreeKey ? 0 : key;
  uint32_t index = buckets_[bucket_of(key)];
  while (index != 0 && nodes_[index].key != key) {
    index = nodes_[index].next_in_bucket;
  }
  return index;
}

uint32_t PendingTable::find_after(uint32_t index) const noexcept {
  const uint64_t key = nodes_[index].key;
  do {
    index = nodes_[index].next_in_bucket;
  } while (index != 0 && nodes_[index].key != key);
  return index;
}

void PendingTable::remove(uint32_t index) noexcept {
  Pending& removed = nodes_[index];
  uint32_t* link = buckets_ + bucket_of(removed.key);
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
