#include "profiling/interpose/hooks/real.hpp"

#include <link.h>

#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/slots.hpp"

namespace penstock::interpose {

namespace {

// Names that live as long as their libraries are loaded. Libraries are opened after they were listed: within
// the listing the loader's locks would be taken the wrong way round.
constexpr std::size_t kMostLibraries = 512;
struct Libraries {
  const char* names[kMostLibraries];
  std::size_t count = 0;
};

int list(dl_phdr_info* about, std::size_t, void* with) noexcept {
  auto* libraries = static_cast<Libraries*>(with);
  if (about->dlpi_name != nullptr && about->dlpi_name[0] != 0 && libraries->count < kMostLibraries) {
    libraries->names[libraries->count++] = about->dlpi_name;
  }
  return 0;
}

// In a child that must not take the loader's lock, and where nobody else gets it either: the list stays as it
// is while it is read.
void list_as_they_are(Libraries& libraries) noexcept {
  for (const link_map* at = _r_debug.r_map; at != nullptr; at = at->l_next) {
    dl_phdr_info about{};
    about.dlpi_name = at->l_name;
    list(&about, sizeof(about), &libraries);
  }
}

// Null for what is not there, and for our own.
void* function_in(const char* library_name, const char* name) noexcept {
  void* library = dlopen(library_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    return nullptr;
  }
  void* function = dlsym(library, name);
  dlclose(library);
  Dl_info owner{};
  Dl_info ours{};
  return function != nullptr && dladdr(function, &owner) != 0 &&
                 dladdr(reinterpret_cast<void*>(&list), &ours) != 0 && owner.dli_fbase != ours.dli_fbase
             ? function
             : nullptr;
}

// A frame of its own: who finds a function at once may have little stack.
[[gnu::noinline]] void* search(const char* name) noexcept {
  Libraries libraries{};
  if (loader_is_stuck()) {
    list_as_they_are(libraries);
  } else {
    walk_objects(&list, &libraries);
  }
  void* function = nullptr;
  for (std::size_t i = 0; i < libraries.count && function == nullptr; ++i) {
    function = function_in(libraries.names[i], name);
  }
  return function;
}

}  // namespace

constinit thread_local const char* volatile WithinNext::begin_ __attribute__((tls_model("initial-exec"))) =
    nullptr;

bool is_another_librarys(const char* name, const void* function) noexcept {
  const void* const libcs = libc_function(name);
  return libcs != nullptr && libcs != function;
}

void* find_real(const char* name, std::atomic<void*>& found) noexcept {
  // Within a child that libc has not forked dlsym() may wait for ever.
  void* function = is_raw_child() ? libc_function(name) : nullptr;
  if (function != nullptr) {
    found.store(function, std::memory_order_relaxed);
    return function;
  }
  function = is_preloaded() ? dlsym(RTLD_NEXT, name) : nullptr;
  if (function == nullptr) {
    function = search(name);
  }
  found.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace penstock::interpose
