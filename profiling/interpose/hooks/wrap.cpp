// Finds the functions that wrappers call: those that the program would have called without this library. Each
// one is looked for only once, because its address is stored.
//
// Threads: the thread of the program that calls the function for the first time. It may be inside malloc, in
// a handler or in a fork's child. rewrite_slots() (slots.cpp) also calls find_real(), with Control held: the
// lock for changing what is recorded.
// Locks: the loader's lock, which is recursive, so a handler does not wait for its own thread. Inside wrapped
// calls, only this file and slots.cpp call the loader (dlopen(), dlsym(), dladdr()); find_loader_lock()
// (loader_walk.cpp) also calls it, but only once.
// Memory: the loader's functions may call malloc. This file allocates nothing itself.
// Signals: not blocked. If a handler interrupts a search and looks for the same function, it finds and stores
// the same address.
// Forks: in a child that libc's fork() has not made, libc's symbol table is searched first (find_real()).
#include "profiling/interpose/hooks/wrap.hpp"

#include <link.h>

#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/slots.hpp"

namespace penstock::interpose {

namespace {

// The names of the loaded libraries. A name is valid as long as its library is loaded. The libraries are
// opened only after the walk that lists them: opening one during the walk would take the loader's locks in
// the wrong order.
constexpr size_t kMostLibraries = 512;
struct Libraries {
  const char* names[kMostLibraries];
  size_t count = 0;
};

// Adds the name of one library to `context`, the list. Called for each library by a walk (loader_walk.hpp),
// under the loader's lock. It copies a pointer and calls nothing.
int add_library(dl_phdr_info* info, size_t, void* context) noexcept {
  auto* libraries = static_cast<Libraries*>(context);
  if (info->dlpi_name != nullptr && info->dlpi_name[0] != 0 && libraries->count < kMostLibraries) {
    libraries->names[libraries->count++] = info->dlpi_name;
  }
  return 0;
}

// Lists the libraries without dl_iterate_phdr(), whose lock is, or may be, held for ever in this child of a
// fork. Allocates nothing. If it is only not known whether that lock is held (LoaderState::unknown), another
// thread may change the list meanwhile.
// The caller opens the libraries with dlopen() later. That does not hang, because dlopen() uses another lock,
// which libc's fork() renews.
void list_libraries_without_lock(Libraries& libraries) noexcept {
  for (const link_map* at = _r_debug.r_map; at != nullptr; at = at->l_next) {
    dl_phdr_info info{};
    info.dlpi_name = at->l_name;
    add_library(&info, sizeof(info), &libraries);
  }
}

// Finds a function in one library. Returns null if the library does not have it, or if it is a function of
// this library. Takes the loader's lock briefly. RTLD_NOLOAD makes sure that nothing is loaded and no
// constructor runs.
void* find_in_library(const char* library_name, const char* name) noexcept {
  void* library = dlopen(library_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    return nullptr;
  }
  void* function = dlsym(library, name);
  dlclose(library);
  Dl_info owner_info{};
  Dl_info own_info{};
  return function != nullptr && dladdr(function, &owner_info) != 0 &&
                 dladdr(reinterpret_cast<void*>(&add_library), &own_info) != 0 &&
                 owner_info.dli_fbase != own_info.dli_fbase
             ? function
             : nullptr;
}

// Looks for the function in all loaded libraries. It is not inlined, because its array of 4 KiB would then be
// on the stack of callers that do not need it, and they may have little stack.
[[gnu::noinline]] void* search_libraries(const char* name) noexcept {
  Libraries libraries{};
  if (loader_is_stuck()) {
    list_libraries_without_lock(libraries);
  } else {
    walk_objects(&add_library, &libraries);
  }
  void* function = nullptr;
  for (size_t i = 0; i < libraries.count && function == nullptr; ++i) {
    function = find_in_library(libraries.names[i], name);
  }
  return function;
}

}  // namespace

// True if libc also has a function `name`, but `function` is another one, or if that is not known yet. It
// only reads libc's symbol table (libc_names.hpp), so any thread, handler or fork's child may call it.
bool is_of_another_library(const char* name, const void* function) noexcept {
  if (!knows_libc()) {
    return true;
  }
  const void* const libc_version = libc_function(name);
  return libc_version != nullptr && libc_version != function;
}

// Finds the function and stores it in `found`. A relaxed store is enough: the function's code was mapped long
// before, and every thread finds the same address. errno may change; that does no harm, because the program's
// call comes later.
void* find_real(const char* name, std::atomic<void*>& found) noexcept {
  // In a child that libc's fork() has not made, dlsym() may wait for ever. So libc's symbol table is searched
  // first there. dlsym() is called there only if libc does not have the name.
  void* function = is_raw_child() ? libc_function(name) : nullptr;
  if (function != nullptr) {
    found.store(function, std::memory_order_relaxed);
    return function;
  }
  function = is_preloaded() ? dlsym(RTLD_NEXT, name) : nullptr;
  if (function == nullptr) {
    function = search_libraries(name);
  }
  found.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace penstock::interpose
