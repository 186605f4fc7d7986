// Finds the functions that wrappers call: those that the program would have called without this library. Each
// one is looked for only once, because its address is stored.
//
// Threads: the program's thread that calls the function for the first time. That thread may be inside malloc,
// in a handler or in a fork's child. rewrite_slots() (slots.cpp) calls find_real() with Control held, the
// lock for changing what is recorded.
// Locks: the loader's lock, which is recursive, so a handler in its own thread does not hang. In wrapped
// calls only this file and slots.cpp call the loader (dlopen(), dlsym(), dladdr()), and find_loader_lock()
// (loader_walk.cpp) once.
// Memory: the loader's functions may call malloc. This file allocates nothing itself.
// Signals: not blocked. A handler may interrupt this and look for the same function. It finds and stores the
// same address.
// Forks: in a child that was not forked by libc's fork(), libc's symbol table is read first (find_real()).
#include "profiling/interpose/hooks/wrap.hpp"

#include <link.h>

#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/slots.hpp"

namespace penstock::interpose {

namespace {

// The names of the loaded libraries; a name is valid as long as its library is loaded. The libraries are
// opened only after all are listed, because opening them during the walk would take the loader's locks in the
// wrong order.
constexpr size_t kMostLibraries = 512;
struct Libraries {
  const char* names[kMostLibraries];
  size_t count = 0;
};

// Adds the name of one library to the list `with`. Called inside a walk over the loaded libraries
// (loader_walk.hpp), under the loader's lock. Copies a pointer and calls nothing.
int add_library(dl_phdr_info* about, size_t, void* with) noexcept {
  auto* libraries = static_cast<Libraries*>(with);
  if (about->dlpi_name != nullptr && about->dlpi_name[0] != 0 && libraries->count < kMostLibraries) {
    libraries->names[libraries->count++] = about->dlpi_name;
  }
  return 0;
}

// Lists the libraries without dl_iterate_phdr(), for a child in which the lock of dl_iterate_phdr() is, or
// may be, held for ever. dlopen() uses another lock, which libc's fork() renews and search_libraries() takes
// later. If the state of the first lock is only unknown (LoaderState::unknown), another thread may change the
// list meanwhile. Allocates nothing.
void list_libraries_without_lock(Libraries& libraries) noexcept {
  for (const link_map* at = _r_debug.r_map; at != nullptr; at = at->l_next) {
    dl_phdr_info about{};
    about.dlpi_name = at->l_name;
    add_library(&about, sizeof(about), &libraries);
  }
}

// Finds a function in one library. Null if the library lacks it, or if it is a function of this library. With
// RTLD_NOLOAD nothing is loaded, and no constructor runs. Takes the loader's lock briefly.
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

// Looks for the function in all loaded libraries. Not inlined: its array is 4 KiB, and a caller that does not
// need it may have little stack.
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

constinit thread_local const char* volatile InOtherLibrary::begin_
    __attribute__((tls_model("initial-exec"))) = nullptr;

// Compares `function` with the function of this name in libc. It only reads libc's symbol table
// (libc_names.hpp), so any thread, handler or fork's child may call it.
bool is_of_another_library(const char* name, const void* function) noexcept {
  const void* const libc_version = libc_function(name);
  return libc_version != nullptr && libc_version != function;
}

// Relaxed stores to `found` are enough: the code of the function was mapped before, and every thread finds
// the same address. errno may change here, before the call is made.
void* find_real(const char* name, std::atomic<void*>& found) noexcept {
  // libc's table comes first: in a child that was not forked by libc's fork(), dlsym() may wait for ever. For
  // a name that libc does not have, dlsym() is called nevertheless.
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
