#include "profiling/interpose/descriptors.hpp"

#include <new>

#include "profiling/interpose/private_memory.hpp"
#include "profiling/interpose/system.hpp"

namespace penstock::interpose {

std::atomic<DescriptorPage*> descriptor_pages[kDescriptorPages];

namespace {

// Free descriptions: a list for each of some slots, taken with a try, so that threads that open and close at
// the same time seldom meet.
constexpr std::size_t kLists = 16;
constexpr std::size_t kAtOnce = 64;
struct alignas(64) FreeList {
  std::atomic_flag locked;
  Description* first = nullptr;
  std::uint64_t made = 0;
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
  std::uint64_t serial() noexcept { return ++list_->made * kLists + own_list; }  // never 0, never twice

 private:
  FreeList* list_;
};

DescriptorPage* page_of(unsigned fd) noexcept {
  if (fd >= unsigned{kDescriptorPages} * kDescriptorsPerPage) {
    return nullptr;
  }
  std::atomic<DescriptorPage*>& entry = descriptor_pages[fd / kDescriptorsPerPage];
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

Description* make_description() noexcept {
  Description* made = nullptr;
  std::uint64_t serial = 0;
  {
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
    made = list.first();
    list.first() = made->next_free;
    serial = list.serial();
  }
  made->file = 0;
  made->name = 0;
  made->kind = PENSTOCK_REGULAR;
  made->appends = false;
  made->position.store(0, std::memory_order_relaxed);
  made->references.store(1, std::memory_order_relaxed);
  made->serial.store(serial, std::memory_order_release);
  return made;
}

void drop_reference(Description* description) noexcept {
  if (description->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    description->serial.store(0, std::memory_order_release);
    Taken list;
    description->next_free = list.first();
    list.first() = description;
  }
}

void describe(int fd, Description* description) noexcept {
  DescriptorPage* page = fd < 0 ? nullptr : page_of(static_cast<unsigned>(fd));
  if (page == nullptr) {
    drop_reference(description);
    return;
  }
  Description* before = page->at[fd % kDescriptorsPerPage].exchange(description, std::memory_order_acq_rel);
  if (before != nullptr) {
    drop_reference(before);
  }
}

void forget(int fd) noexcept {
  if (described(fd) == nullptr) {
    return;
  }
  DescriptorPage* page =
      descriptor_pages[static_cast<unsigned>(fd) / kDescriptorsPerPage].load(std::memory_order_acquire);
  Description* before = page->at[fd % kDescriptorsPerPage].exchange(nullptr, std::memory_order_acq_rel);
  if (before != nullptr) {
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
       page < unsigned{kDescriptorPages} && page * kDescriptorsPerPage <= last; ++page) {
    if (descriptor_pages[page].load(std::memory_order_acquire) == nullptr) {
      continue;
    }
    for (unsigned i = 0; i < unsigned{kDescriptorsPerPage}; ++i) {
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
  for (std::atomic<DescriptorPage*>& entry : descriptor_pages) {
    if (DescriptorPage* page = entry.load(std::memory_order_acquire); page != nullptr) {
      for (std::atomic<Description*>& at : page->at) {
        if (Description* description = at.load(std::memory_order_acquire); description != nullptr) {
          visit(*description, with);
        }
      }
    }
  }
}

}  // namespace penstock::interpose
