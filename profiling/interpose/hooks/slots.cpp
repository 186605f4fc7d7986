// Rewrites and restores slots: the words through which loaded objects call functions of other objects
// (slots.hpp). A walk calls a function for each loaded object (loader_walk.hpp). A search is one run of
// rewrite_slots().
//
// Threads: rewrite_slots(), restore_slots() and what they call run in the thread that holds Control
// (recording.hpp), with all its signals blocked. All other functions run in any thread, in wrapped calls.
// Locks: Control guards the plain variables from `slots` to `search_is_complete`, and the wrapped names.
// The atomics after them are used without a lock. The functions that a walk calls run under the loader's
// lock.
// Memory: GrowingArray takes it from the kernel. malloc could hang there: the arrays grow under the loader's
// lock, and malloc may wait for a thread that waits for that lock. find_real() may call malloc, outside of
// any walk.
// Signals: a handler may call is_preloaded(), will_load(), search_may_find_objects() and
// has_unseen_objects(), because they take no lock of this library.
// Forks: none happens during a walk (loader_walk.hpp).
#include "profiling/interpose/hooks/slots.hpp"

#include <dlfcn.h>
#include <elf.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <string.h>
#include <sys/mman.h>

#include <atomic>

#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/slot_objects.hpp"
#include "profiling/interpose/hooks/wrap.hpp"
#include "profiling/interpose/hooks/wrapped_names.hpp"
#include "profiling/interpose/writer/private_memory.hpp"
#include "profiling/interpose/writer/session.hpp"

namespace penstock::interpose {

namespace {

struct Slot {
  uintptr_t* address;
  uintptr_t first_value;  // value of the slot before it was rewritten
  uint16_t name_index;
  uint16_t copy;
  uint32_t object_index;
};
struct Object {
  uintptr_t base;
  const void* headers;
  uintptr_t end;
  bool still_loaded;  // restore_slots() has found it among the loaded objects
  bool was_visited;   // an earlier search has rewritten slots of this object
};
GrowingArray<Slot> slots;
GrowingArray<Object> objects;  // objects that have slots
// Objects whose slots a search has rewritten completely. Later searches skip them.
struct VisitedObject {
  uintptr_t base;
  const void* headers;
};
GrowingArray<VisitedObject> visited_objects;
size_t next_visited = 0;  // where is_visited() looks first: each walk visits the objects in the same order
unsigned long long last_unload_count = 0;
// A slot of a function that is not libc's, and the function to which the loader has bound it or will bind it.
struct LibrarySlot {
  const uintptr_t* address;
  const char* path;  // name of the object that has the slot
  uint16_t name_index;
  uintptr_t function;
};
GrowingArray<LibrarySlot> library_slots;  // those that are not bound yet, or to their own object
// Whether the running search has rewritten every slot that it should. False if it has met an object that was
// still being loaded, or if memory was short.
bool search_is_complete = true;
// How many objects had been loaded at the last search; kIncomplete if that search could not rewrite all
// slots. Stored only at the end of a search. Until then a thread that has loaded an object still sees that
// the object is new, and waits for Control in rewrite_new_objects(), instead of calling the object's
// functions uncounted.
constexpr unsigned long long kIncomplete = ~0ULL;
std::atomic<unsigned long long> last_load_count{kIncomplete};
// How many more times search_may_find_objects() may look for new objects after the begin of the last
// dlopen(). When none is left, it still looks once every 100 ms until 10 s after that begin, because the
// dlopen() may not have ended. last_load_begin_ns and last_late_search_ns limit these late searches.
std::atomic<unsigned> searches_left{0};
std::atomic<int64_t> last_load_begin_ns{0};   // when the last load began
std::atomic<int64_t> last_late_search_ns{0};  // when the last of these late searches began

// --- The functions from here to find_first_of_two() run in a walk, for each loaded object (loader_walk.hpp).
// The loader's lock is held, and forks wait. So these functions must not call the loader and must not wait,
// and they get memory only from the kernel. Control is held too, except in read_loader_counts() and
// find_first_of_two().

bool is_visited(const dl_phdr_info& info) noexcept {
  const auto is_it = [&](const VisitedObject& object) {
    return object.base == info.dlpi_addr && object.headers == info.dlpi_phdr;
  };
  for (size_t i = 0; i < visited_objects.count; ++i) {
    next_visited = next_visited < visited_objects.count ? next_visited : 0;
    if (is_it(visited_objects.items[next_visited++])) {
      return true;
    }
  }
  return false;
}

struct LoaderCounts {
  unsigned long long loads;
  unsigned long long unloads;
};
// Reads how many objects have been loaded and unloaded so far. The loader reports the same counts with each
// object, so the walk ends at the first one. Any thread may call this.
int read_loader_counts(dl_phdr_info* info, size_t, void* context) noexcept {
  *static_cast<LoaderCounts*>(context) = {.loads = info->dlpi_adds, .unloads = info->dlpi_subs};
  return 1;
}

// Marks the wrapped names that this object imports, and lists its slots for functions that are not libc's, if
// the functions must still be found. Called in the first walk of a search. After that walk, find_real() looks
// up only the marked functions.
int mark_imported(dl_phdr_info* info, size_t, void*) noexcept {
  if (is_own(*info) || is_visited(*info)) {
    return 0;
  }
  const SlotObject object(*info);
  struct Context {
    const SlotObject& object;
    const char* path;
  } context{object, info->dlpi_name};
  object.each_slot(
      [](const FoundSlot& found, void* at) {
        const auto& searched = *static_cast<Context*>(at);
        const size_t name = find_name(found.name);
        if (name == kMostNames) {
          return;
        }
        wrapped_names[name].is_imported = true;
        const uintptr_t value = __atomic_load_n(found.address, __ATOMIC_RELAXED);
        if (wrapped_names[name].is_of_library && found.is_call_slot && searched.object.has_code_at(value)) {
          library_slots.add(
              {.address = found.address, .path = searched.path, .name_index = uint16_t(name), .function = 0});
        }
      },
      &context);
  return 0;
}

// Frees the copies of unloaded libraries. Called in a walk, at its first object.
int forget_unloaded(dl_phdr_info*, size_t, void*) noexcept {
  forget_unloaded_libraries([](unsigned copy) {
    for (size_t i = 0; i < wrapped_name_count; ++i) {
      if (wrapped_names[i].is_of_library) {
        wrapped_names[i].copies[copy]->real->store(nullptr, std::memory_order_relaxed);
      }
    }
  });
  return 1;
}

// The index of an object in `objects`; objects.count if it is not there.
size_t find_object(const dl_phdr_info& info, uintptr_t end) noexcept {
  size_t i = 0;
  while (i < objects.count && !(objects.items[i].base == info.dlpi_addr &&
                                objects.items[i].headers == info.dlpi_phdr && objects.items[i].end == end)) {
    ++i;
  }
  return i;
}

// The index of an object in `objects`. Adds the object if it is not there. Returns ~0U if there is no memory
// to add it.
uint32_t index_of(const dl_phdr_info& info, uintptr_t end) noexcept {
  const size_t index = find_object(info, end);
  const Object new_object{.base = info.dlpi_addr,
                          .headers = info.dlpi_phdr,
                          .end = end,
                          .still_loaded = true,
                          .was_visited = false};
  return index < objects.count || objects.add(new_object) ? uint32_t(index) : ~0U;
}

// Finds a slot by its address and its object; null if it is not known. The address alone is not enough:
// another object may be loaded to the same addresses later.
Slot* known_slot(const uintptr_t* address, uint32_t object) noexcept {
  for (size_t i = 0; i < slots.count; ++i) {
    if (slots.items[i].address == address && slots.items[i].object_index == object) {
      return &slots.items[i];
    }
  }
  return nullptr;
}

struct ObjectRewrite {
  const SlotObject* object;
  uint32_t index;
  bool is_known;  // an earlier search has rewritten slots of this object
};

// Finds a slot that mark_imported() has listed; null if it is not listed.
const LibrarySlot* listed_slot(const uintptr_t* address) noexcept {
  for (size_t i = 0; i < library_slots.count; ++i) {
    if (library_slots.items[i].address == address) {
      return &library_slots.items[i];
    }
  }
  return nullptr;
}

// Chooses the copy of the wrapper for a function that is not libc's; kLibraryCopies if there is none. `name`
// gets the function as the replaced function of that copy.
unsigned copy_for(const WrappedName& name, uintptr_t function) noexcept {
  const unsigned copy = library_copy_of(function);
  if (copy == kLibraryCopies) {
    return copy;
  }
  if (name.replaced(copy) == 0) {
    name.copies[copy]->real->store(reinterpret_cast<void*>(function), std::memory_order_relaxed);
  }
  return name.replaced(copy) == function ? copy
                                         : kLibraryCopies;  // a library may have two versions of a function
}

// Rewrites one slot if it should lead to a wrapper. Threads of the program may be calling a function through
// the slot, so the word is read once and stored once. The slot is remembered before it is changed. If there
// is no memory to remember it, it is not changed, because it could not be restored.
void rewrite_slot(const FoundSlot& found, void* context) noexcept {
  auto& rewriting = *static_cast<ObjectRewrite*>(context);
  const size_t index = find_name(found.name);
  if (index == kMostNames) {
    return;
  }
  const WrappedName& name = wrapped_names[index];
  const uintptr_t value = __atomic_load_n(found.address, __ATOMIC_RELAXED);
  const uintptr_t base = rewriting.object->info().dlpi_addr;
  // A slot is unbound if the loader has not stored the function's address in it yet. Then it leads back into
  // the code of its own object, which asks the loader to bind the slot.
  const bool may_bind_later = found.is_call_slot && (found.is_undefined || name.is_of_library);
  const bool is_unbound = may_bind_later && rewriting.object->has_code_at(value);
  // If the slot still has its value from the file (an offset), another thread is loading the object. Then
  // the next search must look at the slot again.
  const bool is_being_loaded = may_bind_later && value < base && rewriting.object->has_code_at(base + value);
  unsigned copy = 0;
  bool leads_to_function = is_unbound;
  if (name.is_of_library) {
    if (value == name.wrappers[0] || value == name.wrappers[1] || value == name.wrappers[2] ||
        value == name.wrappers[3]) {
      return;
    }
    const LibrarySlot* const listed = listed_slot(found.address);
    if (is_unbound && listed == nullptr) {
      // The object was loaded after the first walk, or there was no memory to list the slot. So it is not
      // known to which function the loader will bind the slot.
      search_is_complete = false;
      return;
    }
    const uintptr_t bound_function = listed != nullptr ? listed->function : value;
    const uintptr_t function = is_being_loaded || value == 0 ? 0 : bound_function;
    copy = function == 0 ? kLibraryCopies : copy_for(name, function);
    leads_to_function = copy != kLibraryCopies;
  } else {
    const uintptr_t replaced = name.replaced(0);
    if (replaced == 0) {
      return;
    }
    leads_to_function = leads_to_function || value == replaced;
  }
  if (!leads_to_function) {
    search_is_complete = search_is_complete && !is_being_loaded;
    return;
  }
  // A part of the object becomes read-only as the last step of its loading (RELRO). While that part is
  // writable, the loader may still be writing to the slot, so the slot is left for the next search.
  if (rewriting.object->is_protected(found.address) && is_writable(found.address)) {
    search_is_complete = false;
    return;
  }
  if (rewriting.index == ~0U) {
    rewriting.index = index_of(rewriting.object->info(), rewriting.object->end());
    rewriting.is_known = rewriting.index != ~0U && objects.items[rewriting.index].was_visited;
  }
  const Slot slot{.address = found.address,
                  .first_value = value,
                  .name_index = uint16_t(index),
                  .copy = uint16_t(copy),
                  .object_index = rewriting.index};
  if (rewriting.index == ~0U ||
      ((!rewriting.is_known || known_slot(found.address, rewriting.index) == nullptr) && !slots.add(slot))) {
    search_is_complete = false;
    return;
  }
  rewriting.object->store(found.address, name.wrappers[copy]);
}

// Rewrites the slots of one object. An object that is being loaded is skipped; the next search rewrites it.
// `is_last_walk` is a bool: whether this is the last walk of the search.
int rewrite_object(dl_phdr_info* info, size_t, void* is_last_walk) noexcept {
  if (is_own(*info) || is_visited(*info)) {
    return 0;
  }
  const SlotObject object(*info);
  if (object.is_being_loaded()) {
    search_is_complete = false;
    return 0;
  }
  const bool was_complete = search_is_complete;
  search_is_complete = true;
  ObjectRewrite rewriting{.object = &object, .index = ~0U, .is_known = false};
  object.each_slot(&rewrite_slot, &rewriting);
  if (rewriting.index != ~0U) {
    objects.items[rewriting.index].was_visited = true;
  }
  if (search_is_complete && *static_cast<const bool*>(is_last_walk)) {
    visited_objects.add({.base = info->dlpi_addr, .headers = info->dlpi_phdr});
  }
  search_is_complete = search_is_complete && was_complete;
  return 0;
}

// Restores the slots of one object. A slot is changed only if it still leads to our wrapper, because the
// program may have stored something else in it. The object is looked up by its whole address range, not only
// by its first address: the object of a slot may have been unloaded, and another one loaded to the same
// place.
int restore_object(dl_phdr_info* info, size_t, void* context) noexcept {
  auto& restored = *static_cast<SlotCounts*>(context);
  const SlotObject object(*info);
  const size_t index = find_object(*info, object.end());
  if (index == objects.count) {
    return 0;
  }
  objects.items[index].still_loaded = true;
  restored.objects += 1;
  for (size_t i = 0; i < slots.count; ++i) {
    Slot& slot = slots.items[i];
    if (slot.object_index != index) {
      continue;
    }
    const WrappedName& name = wrapped_names[slot.name_index];
    if (__atomic_load_n(slot.address, __ATOMIC_RELAXED) == name.wrappers[slot.copy]) {
      object.store(slot.address, slot.first_value);
    }
    // A slot counts as restored if it has its first value or the replaced function (the loader may have bound
    // it meanwhile). It also counts if it has its value from the file: then the loader is loading the object
    // again at the same address.
    const uintptr_t value = __atomic_load_n(slot.address, __ATOMIC_RELAXED);
    const bool has_file_value =
        value == 0 || (value < info->dlpi_addr && object.has_code_at(info->dlpi_addr + value));
    const bool is_restored = value == slot.first_value || value == name.replaced(slot.copy) || has_file_value;
    (is_restored ? restored.slots : restored.unrestored) += 1;
  }
  return 0;
}

// Finds out which comes first in the list of loaded objects: our library (returns 1) or libc (returns 2).
// Either result ends the walk. Returns 0 for any other object, so that the walk continues.
int find_first_of_two(dl_phdr_info* info, size_t, void*) noexcept {
  const SlotObject object(*info);
  const bool is_this_library = object.has_code_at(reinterpret_cast<uintptr_t>(&find_first_of_two));
  const bool is_libc = object.has_code_at(reinterpret_cast<uintptr_t>(&gnu_get_libc_version));
  return is_this_library ? 1 : is_libc ? 2 : 0;
}

}  // namespace

// The library was preloaded if it comes before libc in the list of loaded objects. Any thread and any handler
// may call this; the first call is usually in the library's constructor. Two threads may call it at once,
// because both find and store the same answer.
bool is_preloaded() noexcept {
  static std::atomic<int> known_order{0};
  int order = known_order.load(std::memory_order_relaxed);
  if (order == 0) {
    order = walk_objects(&find_first_of_two, nullptr);
    known_order.store(order, std::memory_order_relaxed);
  }
  return order != 2;
}

// Makes one search through all loaded objects. The caller holds Control, which has blocked all signals. It
// must not be inside a walk, because find_real() calls dlsym(), which would then take the loader's locks in
// the wrong order.
// Order: will_load() comes before the walks, so that a load that is running now leads to another search. The
// replaced functions are found before slots are rewritten, because a thread may call a wrapper at once.
// Otherwise that wrapper would have to find its function itself.
SlotCounts rewrite_slots(bool also_of_libc) noexcept {
  find_library_names();
  if (also_of_libc) {
    find_libc_names();
  }
  if (objects.count == 0 && also_of_libc && !is_preloaded()) {
    will_load();  // a dlopen() that began before its slot was rewritten may be running
  }
  search_is_complete = true;
  library_slots.count = 0;
  LoaderCounts counts{};
  walk_objects(&read_loader_counts, &counts);
  if (counts.unloads != last_unload_count) {
    last_unload_count = counts.unloads;
    visited_objects.count = 0;  // another object may be where an unloaded one was
    walk_objects(&forget_unloaded, nullptr);
  }
  walk_objects(&mark_imported, nullptr);
  for (size_t i = 0; i < wrapped_name_count; ++i) {
    WrappedFunction& wrapped = *wrapped_names[i].copies[0];
    if (wrapped_names[i].is_imported && !wrapped_names[i].is_of_library &&
        wrapped.real->load(std::memory_order_relaxed) == nullptr) {
      find_real(wrapped.name, *wrapped.real);
    }
    wrapped_names[i].is_imported = false;  // later searches look up what new objects import
  }
  for (size_t i = 0; i < library_slots.count; ++i) {
    LibrarySlot& slot = library_slots.items[i];
    slot.function = reinterpret_cast<uintptr_t>(
        function_to_be_bound(slot.path, wrapped_names[slot.name_index].copies[0]->name));
  }
  // The slots are rewritten twice. During the first walk the loader may be binding a slot for a call of
  // another thread, and may overwrite our wrapper with the function. The second walk stores the wrapper
  // again. That is enough, because the loader binds a slot only once.
  bool is_last_walk = false;
  walk_objects(&rewrite_object, &is_last_walk);
  is_last_walk = true;
  walk_objects(&rewrite_object, &is_last_walk);
  last_load_count.store(search_is_complete ? counts.loads : kIncomplete, std::memory_order_release);
  return {.slots = slots.count, .objects = objects.count};
}

// Restores the slots that lead to wrappers, and forgets all slots. The caller holds Control. The wrappers
// stay in memory and work without recording, because threads may still be inside them, and the program may
// have kept their addresses. may_have_new_objects is cleared, because no more searches are needed.
SlotCounts restore_slots() noexcept {
  SlotCounts restored;
  for (size_t i = 0; i < objects.count; ++i) {
    objects.items[i].still_loaded = false;
  }
  walk_objects(&restore_object, &restored);
  for (size_t i = 0; i < slots.count; ++i) {
    restored.unloaded += objects.items[slots.items[i].object_index].still_loaded ? 0 : 1;
  }
  slots.count = 0;
  objects.count = 0;
  visited_objects.count = 0;
  session.may_have_new_objects = false;
  return restored;
}

// Notes that an object is about to be loaded, so that wrapped calls look for new objects again. Any thread
// calls this before it loads an object. It takes no lock and only stores to atomics. may_have_new_objects is
// stored last: a thread that sees it must also see the new value of searches_left. Otherwise that thread
// would find no searches left and clear may_have_new_objects, and the new object would never be noticed.
void will_load() noexcept {
  constexpr unsigned kSearchesAfterLoad = 1000;  // most searches after a load that adds no object
  last_load_begin_ns.store(nanoseconds(CLOCK_MONOTONIC));
  searches_left.store(kSearchesAfterLoad);
  session.may_have_new_objects.store(true);
}

// Uses up one of searches_left, and returns whether there are objects that no search has seen. Called in any
// thread, in a wrapped call. Takes no lock of this library, but has_unseen_objects() takes the loader's lock
// for a walk. It does not wait long: a thread that loads an object holds that lock only briefly.
bool search_may_find_objects() noexcept {
  unsigned searches = searches_left.load();
  while (searches != 0 && !searches_left.compare_exchange_weak(searches, searches - 1)) {
  }
  if (searches == 0) {
    // Other threads may have used up all searches while one thread was still loading an object. So this
    // continues to look for new objects once every 100 ms, until 10 s after the last load began.
    constexpr int64_t kLongLoadNs = 10'000'000'000;
    constexpr int64_t kSearchIntervalNs = 100'000'000;
    const int64_t now_ns = nanoseconds(CLOCK_MONOTONIC);
    if (now_ns - last_load_begin_ns.load() < kLongLoadNs) {
      int64_t last_search_ns = last_late_search_ns.load();
      return now_ns - last_search_ns >= kSearchIntervalNs &&
             last_late_search_ns.compare_exchange_strong(last_search_ns, now_ns) && has_unseen_objects();
    }
    session.may_have_new_objects.store(false);
    if (searches_left.load() == 0) {
      return false;
    }
    session.may_have_new_objects.store(true);  // a load began meanwhile: continue to search
  }
  return has_unseen_objects();
}

// Whether the next search may find something: the loader's count of loaded objects has changed since the last
// search, or that search was incomplete. Any thread may call this; the walk only reads a count.
bool has_unseen_objects() noexcept {
  const unsigned long long last_count = last_load_count.load(std::memory_order_acquire);
  LoaderCounts counts{};
  walk_objects(&read_loader_counts, &counts);
  return counts.loads != last_count;
}

}  // namespace penstock::interpose
