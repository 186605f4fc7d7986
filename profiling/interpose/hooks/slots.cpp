// Rewrites and restores slots. slots.hpp says who calls what.
//
// Threads: rewrite_slots(), restore_slots() and what they call run in the holder of Control, with all signals
// blocked. All other functions run in any thread, in wrapped calls.
// Locks: Control for the plain variables `names`, `slots`, `objects`, `own_base` and `complete`. The atomics
// after them are used without a lock. Callbacks of a walk run under the loader's lock.
// Memory: GrowingArray takes it from the kernel, because it grows under the loader's lock, where malloc may
// wait for a thread that waits for that lock. make_names() and find_real() may call malloc, outside of any
// walk.
// Signals: a handler may call is_preloaded(), will_load(), search_may_find_objects() and
// has_unseen_objects(), which hold no lock of ours.
// Forks: none happens during a walk (loader_walk.hpp).
#include "profiling/interpose/hooks/slots.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>

#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/slot_objects.hpp"
#include "profiling/interpose/hooks/wrap.hpp"
#include "profiling/interpose/writer/private_memory.hpp"
#include "profiling/interpose/writer/session.hpp"

extern "C" {
// The section that PENSTOCK_WRAPPED fills.
extern penstock::interpose::Wrapped __start_penstock_wrapped[] __attribute__((visibility("hidden")));
extern penstock::interpose::Wrapped __stop_penstock_wrapped[] __attribute__((visibility("hidden")));
}

namespace penstock::interpose {

namespace {

// Each wrapped name, found by its hash. Filled once, under Control.
constexpr std::size_t kMostNames = 1024;
constexpr std::size_t kNameTable = 4096;
struct Name {
  Wrapped* wrapped = nullptr;
  std::uintptr_t wrapper = 0;
  bool imported = false;  // some object imports it
};
Name names[kMostNames];
std::size_t name_count = 0;
std::uint16_t name_table[kNameTable];  // index into `names` + 1; 0: free

struct Slot {
  std::uintptr_t* at;
  std::uintptr_t first_value;  // value before it was rewritten
  std::uint32_t name;
  std::uint32_t object;
};
struct Object {
  std::uintptr_t base;
  const void* headers;
  std::uintptr_t end;
  bool still_loaded;  // for restore_slots(): it is still loaded
  bool counted;       // a search has visited it before
};
template <typename T>
struct GrowingArray {
  T* at = nullptr;
  std::size_t count = 0;
  std::size_t room = 0;
  bool add(const T& one) noexcept {
    if (count == room) {
      const std::size_t more = room == 0 ? 4096 : room * 2;
      auto* fresh = static_cast<T*>(private_memory(more * sizeof(T)));
      if (fresh == nullptr) {
        return false;
      }
      if (at != nullptr) {
        memcpy(fresh, at, count * sizeof(T));
        free_private_memory(at, room * sizeof(T));
      }
      at = fresh;
      room = more;
    }
    at[count++] = one;
    return true;
  }
};
GrowingArray<Slot> slots;
GrowingArray<Object> objects;
std::uintptr_t own_base = 0;
// About the running search: no object was being loaded, and there was enough memory.
bool complete = true;
// How many objects had been loaded at the last complete search. Stored at its end: until then a thread that
// has loaded an object waits for Control in rewrite_new_objects(), instead of using the object unwatched.
constexpr unsigned long long kIncomplete = ~0ULL;
std::atomic<unsigned long long> loads_seen{kIncomplete};
// How many more searches are worth their time. load_ns and late_search_ns add a few for loads that take long
// (search_may_find_objects()).
std::atomic<unsigned> searches_left{0};
std::atomic<std::int64_t> load_ns{0};         // when the last load began
std::atomic<std::int64_t> late_search_ns{0};  // when the last search for a load that takes long began

// The first index in name_table to search for a name: its hash. Callbacks of a walk call it under the
// loader's lock, where no function may be called but strcmp().
std::size_t first_index_of(const char* name) noexcept {
  std::uint32_t hash = 2166136261U;
  for (; *name != 0; ++name) {
    hash = (hash ^ static_cast<unsigned char>(*name)) * 16777619U;
  }
  return hash % kNameTable;
}

// The index of a wrapped name; kMostNames if the name is not wrapped.
std::size_t find_name(const char* text) noexcept {
  if (text[0] == '_' && text[1] == 'Z') {
    return kMostNames;  // a C++ name, which is never wrapped: an object may have 100,000 of them
  }
  for (std::size_t i = first_index_of(text); name_table[i] != 0; i = (i + 1) % kNameTable) {
    if (strcmp(names[name_table[i] - 1U].wrapped->name, text) == 0) {
      return name_table[i] - 1U;
    }
  }
  return kMostNames;
}

void add_wrapped_name(Wrapped& wrapped, std::uintptr_t wrapper) noexcept {
  if (wrapper == 0 || name_count == kMostNames || find_name(wrapped.name) != kMostNames) {
    return;
  }
  std::size_t i = first_index_of(wrapped.name);
  while (name_table[i] != 0) {
    i = (i + 1) % kNameTable;
  }
  names[name_count] = {.wrapped = &wrapped, .wrapper = wrapper};
  name_table[i] = static_cast<std::uint16_t>(++name_count);
}

// Called under Control, outside of any walk: dladdr(), dlopen() and dlsym() take the loader's lock and may
// call malloc. malloc may make wrapped calls in this thread; they need nothing that is held here.
void make_names() noexcept {
  if (name_count != 0) {
    return;
  }
  Dl_info about{};
  if (dladdr(reinterpret_cast<void*>(&make_names), &about) == 0) {
    return;
  }
  own_base = reinterpret_cast<std::uintptr_t>(about.dli_fbase);
  if (void* own = dlopen(about.dli_fname, RTLD_LAZY | RTLD_NOLOAD); own != nullptr) {
    for (Wrapped* one = __start_penstock_wrapped; one != __stop_penstock_wrapped; ++one) {
      add_wrapped_name(*one, reinterpret_cast<std::uintptr_t>(dlsym(own, one->name)));
    }
    dlclose(own);
  }
  add_loader_wrappers(&add_wrapped_name);
}

std::uintptr_t real_of(const Name& name) noexcept {
  return reinterpret_cast<std::uintptr_t>(name.wrapped->real->load(std::memory_order_relaxed));
}

bool is_own(const dl_phdr_info& about) noexcept {
  return about.dlpi_addr == own_base;
}

// --- From here to find_first_of_two(): callbacks of a walk (loader_walk.hpp). The loader's lock is held, and
// forks wait. Control is held, except in read_load_count() and find_first_of_two(). They must not call the
// loader and must not wait, and they get memory only from the kernel.

// First walk: marks the names that any object imports. Only functions with these names are searched for after
// it.
int mark_imported(dl_phdr_info* about, std::size_t, void* loads) noexcept {
  if (!is_own(*about)) {
    SlotObject(*about).each(
        [](const FoundSlot& found, void*) {
          if (const std::size_t name = find_name(found.name); name != kMostNames) {
            names[name].imported = true;
          }
        },
        nullptr);
  }
  *static_cast<unsigned long long*>(loads) = about->dlpi_adds;
  return 0;
}

// The index of a known object; objects.count if it is not known.
std::size_t find_object(const dl_phdr_info& about, std::uintptr_t end) noexcept {
  std::size_t i = 0;
  while (i < objects.count && !(objects.at[i].base == about.dlpi_addr &&
                                objects.at[i].headers == about.dlpi_phdr && objects.at[i].end == end)) {
    ++i;
  }
  return i;
}

// The index of an object, which is added if it is not known; ~0U if there is no memory to add it.
std::uint32_t index_of(const dl_phdr_info& about, std::uintptr_t end) noexcept {
  const std::size_t index = find_object(about, end);
  const Object fresh{.base = about.dlpi_addr,
                     .headers = about.dlpi_phdr,
                     .end = end,
                     .still_loaded = true,
                     .counted = false};
  return index < objects.count || objects.add(fresh) ? static_cast<std::uint32_t>(index) : ~0U;
}

// A slot is known by its address and object: another object may be loaded to the same addresses later.
Slot* known_slot(const std::uintptr_t* at, std::uint32_t object) noexcept {
  for (std::size_t i = 0; i < slots.count; ++i) {
    if (slots.at[i].at == at && slots.at[i].object == object) {
      return &slots.at[i];
    }
  }
  return nullptr;
}

struct Rewriting {
  const SlotObject* object;
  std::uint32_t index;
  bool again;  // some of its slots are known from an earlier search
};

// Decides about one slot and stores the wrapper. Program threads call through the slot meanwhile: the word is
// read once and stored once. The slot is remembered before it is changed. Without memory to remember it, it
// is not changed, because it could not be restored.
void rewrite(const FoundSlot& found, void* with) noexcept {
  auto& rewriting = *static_cast<Rewriting*>(with);
  const std::size_t index = find_name(found.name);
  const std::uintptr_t real = index == kMostNames ? 0 : real_of(names[index]);
  if (real == 0) {
    return;
  }
  const std::uintptr_t value = __atomic_load_n(found.at, __ATOMIC_RELAXED);
  // A slot that is not bound yet leads back into its own object's code, which asks the loader to bind it.
  const bool calls_bound_later = found.is_call && found.is_undefined;
  const bool unbound = calls_bound_later && rewriting.object->has_code_at(value);
  if (value != real && !unbound) {
    // The value is still that of the file, so another thread is loading the object.
    const std::uintptr_t base = rewriting.object->about().dlpi_addr;
    if (calls_bound_later && value < base && rewriting.object->has_code_at(base + value)) {
      complete = false;
    }
    return;
  }
  // The loader makes this part read-only last. While it is writable, the loader may still be writing to it.
  if (rewriting.object->is_protected(found.at) && is_writable(found.at)) {
    complete = false;
    return;
  }
  if (rewriting.index == ~0U) {
    rewriting.index = index_of(rewriting.object->about(), rewriting.object->end());
    rewriting.again = rewriting.index != ~0U && objects.at[rewriting.index].counted;
  }
  const Slot fresh{.at = found.at,
                   .first_value = value,
                   .name = static_cast<std::uint32_t>(index),
                   .object = rewriting.index};
  if (rewriting.index == ~0U ||
      ((!rewriting.again || known_slot(found.at, rewriting.index) == nullptr) && !slots.add(fresh))) {
    complete = false;
    return;
  }
  rewriting.object->store(found.at, names[index].wrapper);
}

// An object that is being loaded is skipped; the next search rewrites it.
int rewrite_object(dl_phdr_info* about, std::size_t, void*) noexcept {
  if (is_own(*about)) {
    return 0;
  }
  const SlotObject object(*about);
  if (object.is_being_loaded()) {
    complete = false;
    return 0;
  }
  Rewriting rewriting{.object = &object, .index = ~0U, .again = false};
  object.each(&rewrite, &rewriting);
  if (rewriting.index != ~0U) {
    objects.at[rewriting.index].counted = true;
  }
  return 0;
}

// Only a slot that still has our wrapper is changed: the program may have stored something else. The slot's
// object is found by its address range, because it may have been unloaded, and another object may be at its
// addresses.
int restore_object(dl_phdr_info* about, std::size_t, void* with) noexcept {
  auto& restored = *static_cast<SlotCounts*>(with);
  const SlotObject object(*about);
  const std::size_t index = find_object(*about, object.end());
  if (index == objects.count) {
    return 0;
  }
  objects.at[index].still_loaded = true;
  restored.objects += 1;
  for (std::size_t i = 0; i < slots.count; ++i) {
    Slot& slot = slots.at[i];
    if (slot.object != index) {
      continue;
    }
    if (__atomic_load_n(slot.at, __ATOMIC_RELAXED) == names[slot.name].wrapper) {
      object.store(slot.at, slot.first_value);
    }
    // The loader may have bound the slot meanwhile, or may be loading the object again at the same address.
    const std::uintptr_t value = __atomic_load_n(slot.at, __ATOMIC_RELAXED);
    const bool as_linked =
        value == 0 || (value < about->dlpi_addr && object.has_code_at(about->dlpi_addr + value));
    const bool is_its_own = value == slot.first_value || value == real_of(names[slot.name]) || as_linked;
    (is_its_own ? restored.slots : restored.differing) += 1;
  }
  return 0;
}

// Any thread. The count is the same for all objects: the first one is enough.
int read_load_count(dl_phdr_info* about, std::size_t, void* with) noexcept {
  *static_cast<unsigned long long*>(with) = about->dlpi_adds;
  return 1;
}

// Which of two objects is first in the list of loaded objects: 1 for this library, 2 for libc.
int find_first_of_two(dl_phdr_info* about, std::size_t, void*) noexcept {
  const SlotObject object(*about);
  const bool is_ours = object.has_code_at(reinterpret_cast<std::uintptr_t>(&find_first_of_two));
  const bool is_libc = object.has_code_at(reinterpret_cast<std::uintptr_t>(&gnu_get_libc_version));
  return is_ours ? 1 : is_libc ? 2 : 0;
}

}  // namespace

// Any thread, also in handlers; usually first in the library's constructor. The answer never changes, so two
// threads that ask at once store the same.
bool is_preloaded() noexcept {
  static std::atomic<int> first{0};
  int known = first.load(std::memory_order_relaxed);
  if (known == 0) {
    known = walk_objects(&find_first_of_two, nullptr);
    first.store(known, std::memory_order_relaxed);
  }
  return known != 2;
}

// The caller holds Control, has blocked all signals and is not inside a walk: find_real() calls dlsym(),
// which would take the loader's locks in the wrong order inside a walk.
// Order: will_load() comes first, so that a load that is running now leads to another search. Functions are
// found before slots are rewritten: otherwise a wrapper that is called at once would have to search.
SlotCounts rewrite_slots() noexcept {
  make_names();
  if (objects.count == 0) {
    will_load();  // a load may have started before its caller's slot led to our wrapper
  }
  complete = true;
  unsigned long long loads = 0;
  walk_objects(&mark_imported, &loads);
  for (std::size_t i = 0; i < name_count; ++i) {
    Wrapped& one = *names[i].wrapped;
    if (names[i].imported && one.real->load(std::memory_order_relaxed) == nullptr) {
      find_real(one.name, *one.real);
    }
  }
  // Twice: the loader may be binding a slot for a call of another thread right now. Then it stores the
  // function over our wrapper, but only once.
  walk_objects(&rewrite_object, nullptr);
  walk_objects(&rewrite_object, nullptr);
  loads_seen.store(complete ? loads : kIncomplete, std::memory_order_release);
  return {.slots = slots.count, .objects = objects.count};
}

// Control is held. Threads may still be inside wrappers, and the program may have kept their addresses; so
// wrappers stay, and work without recording. may_have_loaded is cleared last, because no further search is
// needed.
SlotCounts restore_slots() noexcept {
  SlotCounts restored;
  for (std::size_t i = 0; i < objects.count; ++i) {
    objects.at[i].still_loaded = false;
  }
  walk_objects(&restore_object, &restored);
  for (std::size_t i = 0; i < slots.count; ++i) {
    restored.unloaded += objects.at[slots.at[i].object].still_loaded ? 0 : 1;
  }
  slots.count = 0;
  objects.count = 0;
  session.may_have_loaded = false;
  return restored;
}

// Any thread calls this before it loads an object. It takes no lock and only stores. may_have_loaded is
// stored last: a thread that sees it must also see that searches are left, or it would clear it and this load
// would never be noticed.
void will_load() noexcept {
  constexpr unsigned kSearches = 1000;  // the limit of searches for a load that brings no new object
  load_ns.store(nanoseconds(CLOCK_MONOTONIC));
  searches_left.store(kSearches);
  session.may_have_loaded.store(true);
}

// Any thread, in a wrapped call; no lock of ours. It may walk the objects (has_unseen_objects()). A thread
// that loads an object holds the lock of the walk only briefly.
bool search_may_find_objects() noexcept {
  unsigned left = searches_left.load();
  while (left != 0 && !searches_left.compare_exchange_weak(left, left - 1)) {
  }
  if (left == 0) {
    // Other threads may have used up all searches while one thread's load was running. A few more are left
    // for its end: one every 100 ms, for 10 s.
    constexpr std::int64_t kLongLoadNs = 10'000'000'000;
    constexpr std::int64_t kPauseNs = 100'000'000;
    const std::int64_t now = nanoseconds(CLOCK_MONOTONIC);
    if (now - load_ns.load() < kLongLoadNs) {
      std::int64_t last = late_search_ns.load();
      return now - last >= kPauseNs && late_search_ns.compare_exchange_strong(last, now) &&
             has_unseen_objects();
    }
    session.may_have_loaded.store(false);
    if (searches_left.load() == 0) {
      return false;
    }
    session.may_have_loaded.store(true);  // a load began between the two lines above: continue to search
  }
  return has_unseen_objects();
}

// Any thread. This walk only reads a count. True also after an incomplete search, which must be repeated.
bool has_unseen_objects() noexcept {
  const unsigned long long seen = loads_seen.load(std::memory_order_acquire);
  unsigned long long loads = 0;
  walk_objects(&read_load_count, &loads);
  return loads != seen;
}

}  // namespace penstock::interpose
