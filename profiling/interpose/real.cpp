#include "profiling/interpose/real.hpp"

#include <link.h>

namespace penstock::interpose {

namespace {

struct Search {
  const char* name;
  void* found;
};

int look_into(dl_phdr_info* about, std::size_t, void* with) noexcept {
  auto* search = static_cast<Search*>(with);
  if (about->dlpi_name == nullptr || about->dlpi_name[0] == 0) {
    return 0;
  }
  void* library = dlopen(about->dlpi_name, RTLD_LAZY | RTLD_NOLOAD);
  if (library == nullptr) {
    return 0;
  }
  void* function = dlsym(library, search->name);
  dlclose(library);
  Dl_info owner{};
  Dl_info ours{};
  if (function == nullptr || dladdr(function, &owner) == 0 ||
      dladdr(reinterpret_cast<void*>(&look_into), &ours) == 0 || owner.dli_fbase == ours.dli_fbase) {
    return 0;
  }
  search->found = function;
  return 1;
}

}  // namespace

void* find_real(const char* name, std::atomic<void*>& found) noexcept {
  void* function = dlsym(RTLD_NEXT, name);
  if (function == nullptr) {
    Search search{.name = name, .found = nullptr};
    dl_iterate_phdr(&look_into, &search);
    function = search.found;
  }
  found.store(function, std::memory_order_relaxed);
  return function;
}

}  // namespace penstock::interpose
