// Builds the environment of a program that this one executes, so that the profiler is loaded there too.
//
// Threads: save_environment() runs once, in the library's constructor. All other functions run in any thread,
// between fork and exec, also in a vfork's child.
// Locks: none.
// Memory: save_environment() calls malloc (strdup()); its strings are never freed. All other functions only
// read memory, and write to memory on the caller's stack.
// Signals: a handler may execute a program, and so call these.
#include "profiling/interpose/writer/environment.hpp"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

namespace penstock::interpose {

namespace {

constexpr char kPreload[] = "LD_PRELOAD=";
constexpr std::size_t kPreloadBytes = sizeof(kPreload) - 1;
constexpr char kOurPrefix[] = "PENSTOCK_PROFILE_";
constexpr std::size_t kOurPrefixBytes = sizeof(kOurPrefix) - 1;

char* saved_variables[WatchedEnvironment::kMostAdded];
std::size_t saved_count = 0;
char* library = nullptr;  // path of this library, as in LD_PRELOAD

bool same_variable(const char* a, const char* b) noexcept {
  while (*a == *b && *a != '=' && *a != 0) {
    ++a;
    ++b;
  }
  return *a == '=' && *b == '=';
}

const char* find(char* const* environment, const char* variable) noexcept {
  for (; environment != nullptr && *environment != nullptr; ++environment) {
    if (same_variable(*environment, variable)) {
      return *environment;
    }
  }
  return nullptr;
}

}  // namespace

void save_environment() noexcept {
  Dl_info about{};
  if (dladdr(reinterpret_cast<void*>(&save_environment), &about) != 0 && about.dli_fname != nullptr) {
    library = strdup(about.dli_fname);
  }
  for (char** at = environ;
       at != nullptr && *at != nullptr && saved_count < WatchedEnvironment::kMostAdded - 1; ++at) {
    if (strncmp(*at, kOurPrefix, kOurPrefixBytes) == 0) {
      saved_variables[saved_count++] = strdup(*at);
    }
  }
}

std::size_t WatchedEnvironment::count(char* const* given) noexcept {
  std::size_t n = 0;
  while (given != nullptr && given[n] != nullptr) {
    ++n;
  }
  return n;
}

std::size_t WatchedEnvironment::preload_bytes(char* const* given) noexcept {
  const char* preload = find(given, kPreload);
  return kPreloadBytes + (library == nullptr ? 0 : strlen(library)) + 1 +
         (preload == nullptr ? 0 : strlen(preload)) + 1;
}

WatchedEnvironment::WatchedEnvironment(char* const* given, char** room, char* preload) noexcept
    : result_(given) {
  if (library == nullptr || saved_count == 0) {
    return;
  }
  const char* given_preload = find(given, kPreload);
  const bool preloads = given_preload != nullptr && strstr(given_preload, library) != nullptr;
  bool complete = preloads;
  for (std::size_t i = 0; i < saved_count; ++i) {
    complete = complete && find(given, saved_variables[i]) != nullptr;
  }
  if (complete) {
    return;
  }
  std::size_t n = 0;
  for (; given != nullptr && *given != nullptr; ++given) {
    if (preloads || *given != given_preload) {
      room[n++] = *given;
    }
  }
  if (!preloads) {
    char* end = stpcpy(stpcpy(preload, kPreload), library);
    if (given_preload != nullptr && given_preload[kPreloadBytes] != 0) {
      *end = ':';
      strcpy(end + 1, given_preload + kPreloadBytes);
    }
    room[n++] = preload;
  }
  for (std::size_t i = 0; i < saved_count; ++i) {
    room[n] = nullptr;
    if (find(room, saved_variables[i]) == nullptr) {
      room[n++] = saved_variables[i];
    }
  }
  room[n] = nullptr;
  result_ = room;
}

}  // namespace penstock::interpose
