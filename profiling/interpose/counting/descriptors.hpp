// A table that stores the file of each descriptor of the process. A Description corresponds to what the
// kernel calls an open file description: it has the file and the position. A descriptor and its duplicates
// (dup()) share one Description.
//
// Threads: any thread, in a wrapper.
// Locks: finding a description by its descriptor takes no lock. Making and dropping a description takes the
// lock of a free list (descriptors.cpp) for a few instructions, or during one mmap() if that list is empty.
// Memory: from the kernel. Nothing calls malloc or stdio, and errno does not change. Descriptions are never
// unmapped, so a pointer stays readable when another thread closes the descriptor. If the memory is then used
// for another description, its serial changes.
// Signals: all functions but SpareDescription's may be called in a handler.
// Forks: a child has the parent's table as it was at the fork.
//
// Some descriptors were opened before the library was loaded, or by a call without a wrapper. They are looked
// up in /proc at their first use.
#pragma once

#include <sys/types.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

struct alignas(64) Description {
  uint64_t file = 0;                // key of the file's name; 0: not counted for a file (for example a pipe)
  uint64_t name = 0;                // offset of the file's name in this process's session
  std::atomic<uint64_t> serial{0};  // changes when this memory is used for another description
  std::atomic<int64_t> position{0};
  std::atomic<uint32_t> references{0};
  uint16_t kind = PENSTOCK_REGULAR;
  bool appends = false;           // opened with O_APPEND
  uint32_t last_copy_number = 0;  // NameCopy::number of the copy that last handled this (thread_lives.cpp)
  Description* next_free = nullptr;

  // Adds `bytes` to the position. If two threads do so at the same instant, one addition may be lost. This is
  // accepted: a load and a store are cheaper than an atomic addition, and such threads read in an undefined
  // order anyway.
  void advance(int64_t bytes) noexcept {
    position.store(position.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
};

constexpr unsigned kDescriptorPages = 1024;
constexpr unsigned kDescriptorsPerPage = 1024;
using DescriptorPage = std::array<std::atomic<Description*>, kDescriptorsPerPage>;
extern DescriptorPage first_descriptors;  // most programs need only this page
extern std::atomic<DescriptorPage*> more_descriptors[kDescriptorPages];

// The description of a descriptor whose number is at least kDescriptorsPerPage; null if it is not described
// (yet).
Description* description_in_later_page(unsigned fd) noexcept;
// The description of `fd`; null if it is not described (yet). Any thread and any handler may call this. It
// takes no lock.
inline Description* description_of(int fd) noexcept {
  const auto number = unsigned(fd);
  return number < kDescriptorsPerPage ? first_descriptors[number].load(std::memory_order_acquire)
                                      : description_in_later_page(number);
}

// A new description, with one reference; null if there is no memory. The description's serial is set.
Description* make_description() noexcept;
// Gives one reference back. When no reference is left, the memory is free for another description.
void drop_reference(Description* description) noexcept;

// Keeps one free description for a thread's next open(). This is fast, because most files are opened, read
// and closed by the same thread. Only the thread itself calls these functions, within an outermost Update
// (counting.hpp) of its log, so no handler uses the spare description at the same time.
class SpareDescription {
 public:
  // Does what make_description() does, but uses the spare description if there is one.
  Description* make() noexcept;
  // Removes fd from the table, like the function forget() below. If the description has no reference left, it
  // becomes the spare one.
  void forget(int fd) noexcept;

 private:
  Description* spare_description_ = nullptr;
  uint64_t next_serial_ = 0;  // the next serial of those that are reserved for this thread
};

// Makes fd refer to `description`. The caller's reference becomes the table's reference. The description that
// fd had before loses a reference.
void describe(int fd, Description* description) noexcept;
// Removes fd from the table; its description loses a reference. Called before close(), because after close()
// another thread may get the same number.
void forget(int fd) noexcept;
// Makes `to` refer to the description of `from`. Called after dup() or a similar call has made `to`.
void describe_duplicate(int from, int to) noexcept;
// Calls forget() for all numbers from first to last (close_range, closefrom).
void forget_range(unsigned first, unsigned last) noexcept;

// Calls `visit` for each descriptor that is described, while other threads continue.
void for_each_description_concurrently(void (*visit)(Description& description, void* context),
                                       void* context) noexcept;
// Calls `visit` for each descriptor that is described. Called in a fork's child, whose other threads must not
// use the table meanwhile. It first resets the locks of the free lists, because their owners may not exist in
// the child.
void for_each_description_in_child(void (*visit)(Description& description, void* context),
                                   void* context) noexcept;

}  // namespace penstock::interpose
