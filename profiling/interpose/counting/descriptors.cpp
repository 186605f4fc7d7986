// The table of descriptors and the pool of descriptions.
//
// Threads: any thread, in wrappers.
// Locks: the table has none: each entry is one atomic pointer. A store has release order and a load has
// acquire order, so a thread that finds a description finds it filled. The locks of the pool's lists are held
// for a few instructions, or during one mmap() if a list is empty. A thread that finds a list locked takes
// another list, and waits only if all are locked (FreeListLock).
// Memory: from the kernel, possibly under a list's lock. Nothing calls malloc.
// Signals: a handler may call all these functions but those of SpareDescription. If the handler's own thread
// has locked a list, the handler takes another list.
// Forks: if a thread of the parent held a list's lock at the fork, the child uses the other lists, until
// for_each_description_in_child() resets the lock.
#include "profiling/interpose/counting/descriptors.hpp"

#include <new>

#include "profiling/interpose/writer/private_memory.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

constinit DescriptorPage first_descriptors{};
constinit std::atomic<DescriptorPage*> more_descriptors[kDescriptorPages] = {};

namespace {

// Free descriptions are in several lists, so that threads that open and close at the same time seldom use the
// same list. If a list is locked, a thread tries the next one instead of waiting. So a handler never waits
// for a list that its own thread has locked.
constexpr size_t kFreeLists = 16;
constexpr size_t kDescriptionsPerAllocation = 64;
struct alignas(64) FreeList {
  std::atomic_flag is_locked;
  Description* first = nullptr;
};
FreeList free_lists[kFreeLists];
thread_local size_t last_list_index __attribute__((tls_model("initial-exec"))) = 0;

// Holds the lock of one list as long as this object exists. The constructor first tries the list that the
// thread used last, and then the next ones.
class FreeListLock {
 public:
  FreeListLock() noexcept {
    for (size_t i = last_list_index;; i = (i + 1) % kFreeLists) {
      if (!free_lists[i].is_locked.test_and_set(std::memory_order_acquire)) {
        last_list_index = i;
        list_ = &free_lists[i];
        return;
      }
    }
  }
  ~FreeListLock() { list_->is_locked.clear(std::memory_order_release); }
  FreeListLock(const FreeListLock&) = delete;
  FreeListLock& operator=(const FreeListLock&) = delete;
  Description*& first() noexcept { return list_->first; }

 private:
  FreeList* list_;
};

// A description's serial is never used twice. It is never 0, because 0 is the serial of a free description. A
// thread reserves 4,096 serials at once, so that the shared counter is seldom written.
constexpr uint64_t kReservedSerials = 4096;
uint64_t reserve_serials() noexcept {
  static constinit std::atomic<uint64_t> next_serial{kReservedSerials};
  return next_serial.fetch_add(kReservedSerials, std::memory_order_relaxed);
}

// Fills a description that is not in the table. The serial is stored last: another thread may still have a
// pointer from the memory's earlier use, and must see the new serial only after all other fields are new.
Description* initialise(Description* description, uint64_t serial) noexcept {
  description->file = 0;
  description->name = 0;
  description->kind = PENSTOCK_REGULAR;
  description->appends = false;
  description->position.store(0, std::memory_order_relaxed);
  description->references.store(1, std::memory_order_relaxed);
  description->serial.store(serial, std::memory_order_release);
  return description;
}

// Takes a description from a free list. If the list is empty, it fills the list first. Null if there is no
// memory. It may call mmap under the list's lock; meanwhile other threads take another list.
Description* take_free_description() noexcept {
  FreeListLock free_list;
  if (free_list.first() == nullptr) {
    void* memory = private_memory(kDescriptionsPerAllocation * sizeof(Description));
    if (memory == nullptr) {
      return nullptr;
    }
    auto* descriptions = static_cast<Description*>(memory);
    for (size_t i = 0; i < kDescriptionsPerAllocation; ++i) {
      new (descriptions + i) Description;
      descriptions[i].next_free = i + 1 < kDescriptionsPerAllocation ? descriptions + i + 1 : nullptr;
    }
    free_list.first() = descriptions;
  }
  Description* description = free_list.first();
  free_list.first() = description->next_free;
  return description;
}

void add_to_free_list(Description* description) noexcept {
  FreeListLock free_list;
  description->next_free = free_list.first();
  free_list.first() = description;
}

// Drops a reference to the description. Returns true if it was the last reference: then only the caller uses
// the description.
//
// The subtraction is atomic even for the last reference: another thread may be in describe_duplicate() for
// this description, and must then find 0 references. The acquire order is needed for the next use of the
// memory, which must come after all that other threads did with the description. The serial becomes 0, so
// that no thread uses its cached counters of this description any more.
bool decrement_and_test(Description* description) noexcept {
  if (description->references.fetch_sub(1, std::memory_order_acq_rel) != 1) {
    return false;
  }
  description->serial.store(0, std::memory_order_release);
  return true;
}

// Returns the page of the table with this number; null if there is no such page. Pages are never freed.
DescriptorPage* find_page(unsigned number) noexcept {
  if (number == 0) {
    return &first_descriptors;
  }
  return number < kDescriptorPages ? more_descriptors[number].load(std::memory_order_acquire) : nullptr;
}

// Takes the description of `fd` out of the table, and returns it. If two threads close `fd` at the same time,
// the exchange gives the description to only one of them.
[[gnu::always_inline]] inline Description* remove_description(int fd) noexcept {
  if (description_of(fd) == nullptr) {
    return nullptr;
  }
  const auto number = unsigned(fd);
  DescriptorPage& page = *find_page(number / kDescriptorsPerPage);
  return page[number % kDescriptorsPerPage].exchange(nullptr, std::memory_order_acq_rel);
}

// Returns the page of a descriptor, and makes it if necessary. Null if there is no memory, or if the number
// is too large. If two threads make the same page at the same time, one thread's exchange fails, and that
// thread uses the page of the other.
DescriptorPage* find_or_make_page(unsigned fd) noexcept {
  if (fd < kDescriptorsPerPage) [[likely]] {
    return &first_descriptors;
  }
  const unsigned number = fd / kDescriptorsPerPage;
  DescriptorPage* page = find_page(number);
  if (page != nullptr || number >= kDescriptorPages) {
    return page;
  }
  void* memory = private_memory(sizeof(DescriptorPage));
  if (memory == nullptr) {
    return nullptr;
  }
  auto* new_page = new (memory) DescriptorPage;
  if (more_descriptors[number].compare_exchange_strong(page, new_page, std::memory_order_acq_rel)) {
    return new_page;
  }
  free_private_memory(memory, sizeof(DescriptorPage));
  return page;
}

}  // namespace

Description* description_in_later_page(unsigned fd) noexcept {
  const DescriptorPage* page = find_page(fd / kDescriptorsPerPage);
  return page == nullptr ? nullptr : (*page)[fd % kDescriptorsPerPage].load(std::memory_order_acquire);
}

// Makes a description. Its serial costs one atomic addition to a shared counter. Most opens use
// SpareDescription instead, which avoids this addition.
Description* make_description() noexcept {
  Description* description = take_free_description();
  return description == nullptr ? nullptr : initialise(description, reserve_serials());
}

// Makes a description; if there is a spare one, its memory is used. Called only within an update of the
// calling thread's log, because otherwise a handler could use the same spare description.
Description* SpareDescription::make() noexcept {
  Description* description = spare_description_ != nullptr ? spare_description_ : take_free_description();
  if (description == nullptr) [[unlikely]] {
    return nullptr;
  }
  spare_description_ = nullptr;
  if (next_serial_ % kReservedSerials == 0) [[unlikely]] {
    next_serial_ = reserve_serials();
  }
  return initialise(description, next_serial_++);
}

// Removes `fd` from the table. If its description has no reference left, that description becomes the spare
// one, unless there is a spare one already. Called only within an update, like make().
void SpareDescription::forget(int fd) noexcept {
  Description* removed = remove_description(fd);
  if (removed == nullptr || !decrement_and_test(removed)) {
    return;
  }
  if (spare_description_ == nullptr) [[likely]] {
    spare_description_ = removed;
  } else {
    add_to_free_list(removed);
  }
}

// Drops a reference. If it was the last one, the description goes back into a free list. Any thread and any
// handler may call this.
void drop_reference(Description* description) noexcept {
  if (decrement_and_test(description)) {
    add_to_free_list(description);
  }
}

// Stores the description in the table, as the description of `fd`. The caller's reference becomes the table's
// reference. If there is no memory for the table's page, the reference is dropped, and `fd` is looked up in
// /proc at its next use.
void describe(int fd, Description* description) noexcept {
  DescriptorPage* page = fd < 0 ? nullptr : find_or_make_page(unsigned(fd));
  if (page == nullptr) [[unlikely]] {
    drop_reference(description);
    return;
  }
  std::atomic<Description*>& slot = (*page)[unsigned(fd) % kDescriptorsPerPage];
  if (slot.load(std::memory_order_acquire) == nullptr) [[likely]] {
    // If two threads describe the same unused descriptor number at the same time, the first description is
    // overwritten here, and its memory is never used again.
    slot.store(description, std::memory_order_release);
    return;
  }
  if (Description* replaced = slot.exchange(description, std::memory_order_acq_rel); replaced != nullptr) {
    drop_reference(replaced);
  }
}

void forget(int fd) noexcept {
  if (Description* removed = remove_description(fd); removed != nullptr) {
    drop_reference(removed);
  }
}

// Makes `to` refer to the description of `from`, after dup() has succeeded. If `from` has no description,
// `to` gets none either, and is looked up in /proc at its next use.
// Another thread may close `from` at any moment, and the caller has no reference that keeps the description.
// So a reference is added only if the description has at least one already: a count of 0 means that the
// description is free. Then the table is read again. If `from` has another description by now, the memory may
// describe another file already, and the new reference is dropped.
void describe_duplicate(int from, int to) noexcept {
  Description* description = description_of(from);
  uint32_t count = description == nullptr ? 0 : description->references.load(std::memory_order_relaxed);
  while (count != 0 && !description->references.compare_exchange_weak(
                           count, count + 1, std::memory_order_acq_rel, std::memory_order_relaxed)) {
  }
  if (count == 0) {
    forget(to);
    return;
  }
  if (description_of(from) != description) {
    drop_reference(description);
    forget(to);
    return;
  }
  describe(to, description);
}

// Removes a range of descriptors from the table. Called before close_range(), and for all descriptors when
// recording begins in a running process.
void forget_range(unsigned first, unsigned last) noexcept {
  for (unsigned page = first / kDescriptorsPerPage;
       page < kDescriptorPages && page * kDescriptorsPerPage <= last; ++page) {
    if (find_page(page) == nullptr) {
      continue;
    }
    for (unsigned i = 0; i < kDescriptorsPerPage; ++i) {
      const unsigned fd = page * kDescriptorsPerPage + i;
      if (fd >= first && fd <= last) {
        forget(int(fd));
      }
    }
  }
}

// Visits all descriptions. Called in a fork's child, at its first counted call. First it resets the locks of
// the free lists: the parent's other threads may have held them at the fork, and do not exist in the child.
void for_each_description_in_child(void (*visit)(Description& description, void* context),
                                   void* context) noexcept {
  for (FreeList& free_list : free_lists) {
    free_list.is_locked.clear();
  }
  for_each_description_concurrently(visit, context);
}

// Visits all descriptions while other threads run. During a visit the description may be freed and used for
// another file, so `visit` must accept the old contents and the new ones.
void for_each_description_concurrently(void (*visit)(Description& description, void* context),
                                       void* context) noexcept {
  for (unsigned number = 0; number < kDescriptorPages; ++number) {
    if (DescriptorPage* page = find_page(number); page != nullptr) {
      for (std::atomic<Description*>& slot : *page) {
        if (Description* description = slot.load(std::memory_order_acquire); description != nullptr) {
          visit(*description, context);
        }
      }
    }
  }
}

}  // namespace penstock::interpose
