// Finds the libraries of wrapped functions by the loader's list of objects (link_map), and their other
// functions by dlsym().
//
// Threads, locks, memory and forks: see library_copies.hpp. `copies` is changed only by the holder of
// Control, in a walk. Other threads read it in wrappers that slots lead to; such a slot is stored after its
// copy.
#include "profiling/interpose/hooks/library_copies.hpp"

#include <dlfcn.h>
#include <link.h>

#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"

namespace penstock::interpose {

namespace {

struct LibraryCopy {
  uintptr_t base = 0;                  // where the library is loaded
  const void* dynamic = nullptr;       // its dynamic section; null: no library has this copy
  std::atomic<uintptr_t> function{0};  // one of its functions, by which the loader finds it
  std::atomic<uint32_t> generation{1};
};
constinit LibraryCopy copies[kLibraryCopies];

// The object that has this address. The loader maps each object in one piece, so it is the one with the
// largest base that is not above the address. Reads the loader's list without its lock: only a walk and a
// fork's child call this. Other callers use object_of() (libc_names.hpp).
const link_map* object_at(uintptr_t address) noexcept {
  const link_map* found = nullptr;
  for (const link_map* at = _r_debug.r_map; at != nullptr; at = at->l_next) {
    if (at->l_addr <= address && (found == nullptr || at->l_addr > found->l_addr)) {
      found = at;
    }
  }
  return found;
}

bool is_loaded(const LibraryCopy& copy) noexcept {
  const link_map* at = _r_debug.r_map;
  while (at != nullptr && !(at->l_addr == copy.base && at->l_ld == copy.dynamic)) {
    at = at->l_next;
  }
  return at != nullptr;
}

// Finds a function as a caller in the object `path` that has no other scope finds it: in the object itself
// and what it depends on. The path "" is that of the program.
void* function_in(const char* path, const char* name) noexcept {
  if (is_fork_child()) {
    return find_in_scope(path, name);
  }
  if (path[0] == 0) {
    return dlsym(RTLD_DEFAULT, name);
  }
  void* object = dlopen(path, RTLD_LAZY | RTLD_NOLOAD);
  if (object == nullptr) {
    return nullptr;
  }
  void* function = dlsym(object, name);
  dlclose(object);
  return function;
}

}  // namespace

unsigned library_copy_of(uintptr_t function) noexcept {
  const link_map* const library = object_at(function);
  if (library == nullptr) {
    return kLibraryCopies;
  }
  unsigned free_copy = kLibraryCopies;
  for (unsigned i = kLibraryCopies; i-- > 0;) {
    if (copies[i].dynamic == library->l_ld && copies[i].base == library->l_addr) {
      return i;
    }
    free_copy = copies[i].dynamic == nullptr ? i : free_copy;
  }
  if (free_copy != kLibraryCopies) {
    copies[free_copy].base = library->l_addr;
    copies[free_copy].dynamic = library->l_ld;
    copies[free_copy].function.store(function);
    copies[free_copy].generation.fetch_add(1);
  }
  return free_copy;
}

void forget_unloaded_libraries(void (*forget)(unsigned copy)) noexcept {
  for (unsigned i = 0; i < kLibraryCopies; ++i) {
    if (copies[i].dynamic != nullptr && !is_loaded(copies[i])) {
      copies[i].dynamic = nullptr;
      forget(i);
    }
    copies[i].generation.fetch_add(1);  // the same library may have been loaded again, or another one like it
  }
}

void* function_of_copy(unsigned copy, const char* name) noexcept {
  const uintptr_t function_in_library = copies[copy].function.load();
  const link_map* const library = is_fork_child() ? object_at(function_in_library)
                                                  : object_of(reinterpret_cast<void*>(function_in_library));
  if (library == nullptr) {
    return nullptr;
  }
  // A library between the program and MPI's or HDF5's own may have some of the functions only.
  void* const function = function_in(library->l_name, name);
  return function != nullptr ? function : function_in("", name);
}

uint32_t generation_of_copy(unsigned copy) noexcept {
  return copies[copy].generation.load(std::memory_order_relaxed);
}

// The loader searches the program and what it depends on first, and then the object and what it depends on.
// An object that was opened with RTLD_DEEPBIND is searched first. So if both have a function, it is not
// certain.
void* function_to_be_bound(const char* path, const char* name) noexcept {
  void* const of_program = function_in("", name);
  void* const of_object = path == nullptr || path[0] == 0 ? nullptr : function_in(path, name);
  if (of_program != nullptr && of_object != nullptr) {
    return of_program == of_object ? of_program : nullptr;
  }
  return of_program != nullptr ? of_program : of_object;
}

}  // namespace penstock::interpose
