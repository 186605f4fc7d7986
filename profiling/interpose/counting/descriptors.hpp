// What the process's descriptors stand for. A Description is what the kernel calls an open file description:
// it is shared by the descriptors that dup() made of one, and knows the file and the position. Looking one up
// takes no lock.
//
// Descriptors that were opened before the library was loaded, or by ways that nobody sees, are asked of /proc
// at their first use.
#pragma once

#include <sys/types.h>

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "profiling/session_abi.h"

namespace penstock::interpose {

struct alignas(64) Description {
  std::uint64_t file = 0;                // key of its name; 0: its operations are kept for no file (a pipe)
  std::uint64_t name = 0;                // where its name is in this process's session
  std::atomic<std::uint64_t> serial{0};  // changes when this memory becomes another description
  std::atomic<std::int64_t> position{0};
  std::atomic<std::uint32_t> references{0};
  std::uint16_t kind = PENSTOCK_REGULAR;
  bool appends = false;
  std::uint32_t taken_along = 0;  // the last time that names were taken to another session (thread_lives.cpp)
  Description* next_free = nullptr;

  void advance(std::int64_t bytes) noexcept {
    position.store(position.load(std::memory_order_relaxed) + bytes, std::memory_order_relaxed);
  }
};

constexpr unsigned kDescriptorPages = 1024;
constexpr unsigned kDescriptorsPerPage = 1024;
struct DescriptorPage {
  std::atomic<Description*> at[kDescriptorsPerPage];
};
extern DescriptorPage first_descriptors;  // most programs have no others
extern std::atomic<DescriptorPage*> more_descriptors[kDescriptorPages];

// Null for one that nobody knows (yet).
Description* described_further(unsigned fd) noexcept;
inline Description* described(int fd) noexcept {
  const auto number = static_cast<unsigned>(fd);
  return number < kDescriptorsPerPage ? first_descriptors.at[number].load(std::memory_order_acquire)
                                      : described_further(number);
}

// A new description, with one reference; null without memory. `serial` is set.
Description* make_description() noexcept;
void drop_reference(Description* description) noexcept;

// A description that a thread has let go of and will need again soon: most files are opened, read and closed
// by one thread. Only that thread comes here, and no signal's handler within.
class SpareDescription {
 public:
  // make_description(), from here if there is one.
  Description* make() noexcept;
  // forget(), and what nobody uses any more is kept here.
  void forget(int fd) noexcept;

 private:
  Description* spare_ = nullptr;
  std::uint64_t next_serial_ = 0;  // of those that are set aside for this thread
};

// fd is a descriptor of `description` from now on, which gives it the caller's reference. What it was before
// is let go of.
void describe(int fd, Description* description) noexcept;
// fd is closed, or about to be.
void forget(int fd) noexcept;
// `to` was made by dup() and its kin from `from`.
void describe_duplicate(int from, int to) noexcept;
// All from first to last were closed (close_range, closefrom).
void forget_range(unsigned first, unsigned last) noexcept;

// For each descriptor that is described, while other threads go on.
void for_each_living_description(void (*visit)(Description& description, void* with), void* with) noexcept;
// The same, and nothing else may happen meanwhile (a fork's child).
void for_each_description(void (*visit)(Description& description, void* with), void* with) noexcept;

}  // namespace penstock::interpose
