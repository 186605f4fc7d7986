// Builds the environment of a program that this one executes, so that the profiler is loaded there too.
//
// Threads: save_environment() runs once, in the library's constructor. All other functions run in any thread,
// also between fork and exec and in a vfork's child.
// Locks: none.
// Memory: save_environment() calls malloc (strdup()); its strings are never freed. All other functions only
// read memory, and write to memory on the caller's stack.
// Signals: a handler may call these functions, because it may execute a program.
#include "profiling/interpose/writer/environment.hpp"

#include <dlfcn.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "profiling/interpose/writer/session_lifetime.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

constexpr char kPreload[] = "LD_PRELOAD=";
constexpr size_t kPreloadBytes = sizeof(kPreload) - 1;
constexpr char kOurPrefix[] = "PENSTOCK_PROFILE_";
constexpr size_t kOurPrefixBytes = sizeof(kOurPrefix) - 1;

char* saved_variables[WatchedEnvironment::kMostAdded];
size_t saved_count = 0;
char* library_path = nullptr;  // path of this library, for LD_PRELOAD

bool is_same_variable(const char* a, const char* b) noexcept {
  while (*a == *b && *a != '=' && *a != 0) {
    ++a;
    ++b;
  }
  return *a == '=' && *b == '=';
}

const char* find_variable(char* const* environment, const char* variable) noexcept {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (is_same_variable(*environment, variable)) {
      return *environment;
    }
  }
  return nullptr;
}

// False if the loader of the program could not open this library, and would print an error: the root has
// changed, or the process may not read it any more. Also false if system calls are restricted: this library,
// loaded anew, would not know that.
bool can_open_library() noexcept {
  if (is_sealed.load(std::memory_order_relaxed)) {
    return false;
  }
  if (!has_kept_access()) {
    return true;
  }
  const long fd = system_call(SYS_openat, AT_FDCWD, as_argument(library_path), O_RDONLY | O_CLOEXEC);
  if (fd >= 0) {
    system_call(SYS_close, fd);
  }
  return fd >= 0;
}

// Finds this library in a list of libraries, whose names end at ':' or ' '; null if it is not there.
const char* find_library(const char* list) noexcept {
  while (library_path != nullptr && *list != 0) {
    const size_t bytes = strcspn(list, ": ");
    if (bytes == strlen(library_path) && memcmp(list, library_path, bytes) == 0) {
      return list;
    }
    list += bytes + (list[bytes] != 0 ? 1 : 0);
  }
  return nullptr;
}

// Copies LD_PRELOAD to `copy`, without this library and without the separator after it. Returns false if the
// library is not in it.
bool copy_without_library(const char* preload, char* copy) noexcept {
  const char* at = preload + kPreloadBytes;
  const char* found = find_library(at);
  const bool is_found = found != nullptr;
  char* end = stpcpy(copy, kPreload);
  for (; found != nullptr; found = find_library(at)) {
    end = static_cast<char*>(mempcpy(end, at, size_t(found - at)));
    at = found + strlen(library_path);
    at += *at != 0 ? 1 : 0;
  }
  strcpy(end, at);
  return is_found;
}

}  // namespace

void save_environment() noexcept {
  Dl_info info{};
  if (dladdr(reinterpret_cast<void*>(&save_environment), &info) != 0 && info.dli_fname != nullptr) {
    library_path = strdup(info.dli_fname);
  }
  for (char** entry = environ;
       entry != nullptr && *entry != nullptr && saved_count < WatchedEnvironment::kMostAdded - 1; ++entry) {
    if (strncmp(*entry, kOurPrefix, kOurPrefixBytes) == 0) {
      saved_variables[saved_count++] = strdup(*entry);
    }
  }
}

bool WatchedEnvironment::is_readable(char* const* given) noexcept {
  ReadableMemory entries;
  ReadableMemory texts;
  for (; given != nullptr; ++given) {
    if (!entries.has(given)) {
      return false;
    }
    if (*given == nullptr) {
      return true;
    }
    if (!texts.has_text(*given)) {
      return false;
    }
  }
  return true;
}

size_t WatchedEnvironment::count(char* const* given) noexcept {
  size_t n = 0;
  while (given != nullptr && given[n] != nullptr) {
    ++n;
  }
  return n;
}

size_t WatchedEnvironment::preload_bytes(char* const* given) noexcept {
  const char* preload = find_variable(given, kPreload);
  return kPreloadBytes + (library_path == nullptr ? 0 : strlen(library_path)) + 1 +
         (preload == nullptr ? 0 : strlen(preload)) + 1;
}

WatchedEnvironment::WatchedEnvironment(char* const* given, char** entries, char* preload,
                                       bool keeps_preload) noexcept
    : environment_(given) {
  if (entries == nullptr) {
    return;
  }
  const char* given_preload = find_variable(given, kPreload);
  if (!keeps_preload || !can_open_library()) {
    if (given_preload != nullptr && copy_without_library(given_preload, preload)) {
      size_t n = 0;
      for (; *given != nullptr; ++given) {
        if (*given != given_preload) {
          entries[n++] = *given;
        } else if (preload[kPreloadBytes] != 0) {
          entries[n++] = preload;
        }
      }
      entries[n] = nullptr;
      environment_ = entries;
    }
    return;
  }
  if (library_path == nullptr || saved_count == 0) {
    return;
  }
  const bool loads_library =
      given_preload != nullptr && find_library(given_preload + kPreloadBytes) != nullptr;
  bool nothing_to_add = loads_library;
  for (size_t i = 0; i < saved_count; ++i) {
    nothing_to_add = nothing_to_add && find_variable(given, saved_variables[i]) != nullptr;
  }
  if (nothing_to_add) {
    return;
  }
  size_t n = 0;
  for (; given != nullptr && *given != nullptr; ++given) {
    if (loads_library || *given != given_preload) {
      entries[n++] = *given;
    }
  }
  if (!loads_library) {
    char* end = stpcpy(stpcpy(preload, kPreload), library_path);
    if (given_preload != nullptr && given_preload[kPreloadBytes] != 0) {
      *end = ':';
      strcpy(end + 1, given_preload + kPreloadBytes);
    }
    entries[n++] = preload;
  }
  for (size_t i = 0; i < saved_count; ++i) {
    entries[n] = nullptr;
    if (find_variable(entries, saved_variables[i]) == nullptr) {
      entries[n++] = saved_variables[i];
    }
  }
  entries[n] = nullptr;
  environment_ = entries;
}

}  // namespace penstock::interpose
