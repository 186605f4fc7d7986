#include "profiling/interpose/counting/descriptors.hpp"

#include <new>

#include "profiling/interpose/writer/private_memory.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

constinit DescriptorPage first_descriptors{};
constinit std::atomic<DescriptorPage*> more_descriptors[kDescriptorPages] = {};

namespace {

// Free descriptions: a list for each of some slots, taken with a try, so that threads that open and close at
// the same time seldom meet.
constexpr std::size_t kLists = 16;
constexpr std::size_t kAtOnce = 64;
struct alignas(64) FreeList {
  std::atomic_flag locked;
  Description* first = nullptr;
};
FreeList free_lists[kLists];
thread_local std::size_t own_list __attribute__((tls_model("initial-exec"))) = 0;

class Taken {
 public:
  Taken() noexcept {
    for (std::size_t i = own_list;; i = (i + 1) % kLists) {
      if (!free_lists[i].locked.test_and_set(std::memory_order_acquire)) {
        own_list = i;
        list_ = &free_lists[i];
        return;
      }
    }
  }
  ~Taken() { list_->locked.clear(std::memory_order_release); }
  Taken(const Taken&) = delete;
  Taken& operator=(const Taken&) = delete;
  Description*& first() noexcept { return list_->first; }

 private:
  FreeList* list_;
};

// Serials are never 0 and never come twice.
constexpr std::uint64_t kSerialsAtOnce = 4096;
std::uint64_t set_serials_aside() noexcept {
  static constinit std::atomic<std::uint64_t> next{kSerialsAtOnce};
  return next.fetch_add(kSerialsAtOnce, std::memory_order_relaxed);
}

// A description that nobody else knows, as a new one.
Description* started(Description* made, std::uint64_t serial) noexcept {
  made->file = 0;
  made->name = 0;
  made->kind = PENSTOCK_REGULAR;
  made->appends = false;
  made->position.store(0, std::memory_order_relaxed);
  made->references.store(1, std::memory_order_relaxed);
  made->serial.store(serial, std::memory_order_release);
  return made;
}

Description* take_free() noexcept {
  Taken list;
  if (list.first() == nullptr) {
    void* memory = private_memory(kAtOnce * sizeof(Description));
    if (memory == nullptr) {
      return nullptr;
    }
    auto* fresh = static_cast<Description*>(memory);
    for (std::size_t i = 0; i < kAtOnce; ++i) {
      new (fresh + i) Description;
      fresh[i].next_free = i + 1 < kAtOnce ? fresh + i + 1 : nullptr;
    }
    list.first() = fresh;
  }
  Description* taken = list.first();
  list.first() = taken->next_free;
  return taken;
}

void put_back(Description* description) noexcept {
  Taken list;
  description->next_free = list.first();
  list.first() = description;
}

// Gives the reference back; whether it was the last one, and the description is the caller's alone. Who makes
// another reference has one: where there is but this one, nobody does.
bool was_last(Description* description) noexcept {
  if (description->references.load(std::memory_order_acquire) != 1 &&
      description->references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return false;
  }
  description->serial.store(0, std::memory_order_release);
  return true;
}

// The page with that number, if there is one.
DescriptorPage* page_at(unsigned number) noexcept {
  if (number == 0) {
    return &first_descriptors;
  }
  return number < kDescriptorPages ? more_descriptors[number].load(std::memory_order_acquire) : nullptr;
}

// What the descriptor stood for, and does not any more.
[[gnu::always_inline]] inline Description* taken_away(int fd) noexcept {
  if (described(fd) == nullptr) {
    return nullptr;
  }
  const auto number = static_cast<unsigned>(fd);
  return page_at(number / kDescriptorsPerPage)
      ->at[number % kDescriptorsPerPage]
      .exchange(nullptr, std::memory_order_acq_rel);
}

// The page of a descriptor, made if need be; null without memory, or where the number is none of one.
DescriptorPage* page_of(unsigned fd) noexcept {
  if (fd < kDescriptorsPerPage) {
    return &first_descriptors;
  }
  if (fd >= kDescriptorPages * kDescriptorsPerPage) {
    return nullptr;
  }
  std::atomic<DescriptorPage*>& entry = more_descriptors[fd / kDescriptorsPerPage];
  DescriptorPage* page = entry.load(std::memory_order_acquire);
  if (page == nullptr) {
    void* memory = private_memory(sizeof(DescriptorPage));
    if (memory == nullptr) {
      return nullptr;
    }
    auto* fresh = new (memory) DescriptorPage;
    if (entry.compare_exchange_strong(page, fresh, std::memory_order_acq_rel)) {
      return fresh;
    }
    give_back_private_memory(memory, sizeof(DescriptorPage));
  }
  return page;
}

}  // namespace

Description* described_further(unsigned fd) noexcept {
  const DescriptorPage* page = page_at(fd / kDescriptorsPerPage);
  return page == nullptr ? nullptr : page->at[fd % kDescriptorsPerPage].load(std::memory_order_acquire);
}

Description* make_description() noexcept {
  Description* made = take_free();
  return made == nullptr ? nullptr : started(made, set_serials_aside());
}

Description* SpareDescription::make() noexcept {
  Description* made = spare_ != nullptr ? spare_ : take_free();
  if (made == nullptr) [[unlikely]] {
    return nullptr;
  }
  spare_ = nullptr;
  if (next_serial_ % kSerialsAtOnce == 0) [[unlikely]] {
    next_serial_ = set_serials_aside();
  }
  return started(made, next_serial_++);
}

void SpareDescription::forget(int fd) noexcept {
  Description* before = taken_away(fd);
  if (before == nullptr || !was_last(before)) {
    return;
  }
  if (spare_ == nullptr) [[likely]] {
    spare_ = before;
  } else {
    put_back(before);
  }
}

void drop_reference(Description* description) noexcept {
  if (was_last(description)) {
    put_back(description);
  }
}

void describe(int fd, Description* description) noexcept {
  DescriptorPage* page = fd < 0 ? nullptr : page_of(static_cast<unsigned>(fd));
  if (page == nullptr) [[unlikely]] {
    drop_reference(description);
    return;
  }
  std::atomic<Description*>& at = page->at[static_cast<unsigned>(fd) % kDescriptorsPerPage];
  if (at.load(std::memory_order_acquire) == nullptr) [[likely]] {
    at.store(description,
             std::memory_order_release);  // if two come at once, one is lost, and no more than that
    return;
  }
  if (Description* before = at.exchange(description, std::memory_order_acq_rel); before != nullptr) {
    drop_reference(before);
  }
}

void forget(int fd) noexcept {
  if (Description* before = taken_away(fd); before != nullptr) {
    drop_reference(before);
  }
}

void describe_duplicate(int from, int to) noexcept {
  Description* shared = described(from);
  if (shared == nullptr) {
    forget(to);
    return;
  }
  shared->references.fetch_add(1, std::memory_order_relaxed);
  describe(to, shared);
}

void forget_range(unsigned first, unsigned last) noexcept {
  for (unsigned page = first / kDescriptorsPerPage;
       page < kDescriptorPages && page * kDescriptorsPerPage <= last; ++page) {
    if (page_at(page) == nullptr) {
      continue;
    }
    for (unsigned i = 0; i < kDescriptorsPerPage; ++i) {
      const unsigned fd = page * kDescriptorsPerPage + i;
      if (fd >= first && fd <= last) {
        forget(static_cast<int>(fd));
      }
    }
  }
}

void for_each_description(void (*visit)(Description& description, void* with), void* with) noexcept {
  for (FreeList& list : free_lists) {
    list.locked.clear();  // a thread that is not there any more may have held it
  }
  for_each_living_description(visit, with);
}

void for_each_living_description(void (*visit)(Description& description, void* with), void* with) noexcept {
  for (unsigned number = 0; number < kDescriptorPages; ++number) {
    if (DescriptorPage* page = page_at(number); page != nullptr) {
      for (std::atomic<Description*>& at : page->at) {
        if (Description* description = at.load(std::memory_order_acquire); description != nullptr) {
          visit(*description, with);
        }
      }
    }
  }
}

}  // namespace penstock::interpose
