// Changes the environment of a program that is executed, so that it is profiled as well. This library is
// added to LD_PRELOAD. Variables that begin with PENSTOCK_PROFILE_ are added if the program's new environment
// lacks them, with the values that they had when this library was loaded. If the program's loader cannot load
// this library (ExecutedProgram::keeps_preload()), or may not open it any more (keep_access()), the library
// is removed from LD_PRELOAD instead.
//
// Threads: any thread that executes a program, also between fork and exec and in a vfork's child.
// Locks: none.
// Memory: only save_environment() may call malloc.
#pragma once

#include <cstddef>

namespace penstock::interpose {

// Copies the present variables that begin with PENSTOCK_PROFILE_. Called once, in the library's constructor.
void save_environment() noexcept;

// The environment that the program gave, together with LD_PRELOAD and the variables that save_environment()
// has copied. All its memory is on the caller's stack, because it is also made between fork() and exec(),
// where malloc is not allowed.
class WatchedEnvironment {
 public:
  static constexpr size_t kMostAdded = 16;
  // Whether all of the given environment can be read. Otherwise the exec fails, and the result is what was
  // given.
  static bool is_readable(char* const* given) noexcept;
  // The result is written to `entries`, which has space for count(given) + kMostAdded + 1 pointers. `preload`
  // has space for preload_bytes(given) bytes. `entries` is null if the environment is not readable.
  WatchedEnvironment(char* const* given, char** entries, char* preload, bool keeps_preload) noexcept;
  char* const* get() const noexcept { return environment_; }

  static size_t count(char* const* given) noexcept;
  static size_t preload_bytes(char* const* given) noexcept;

 private:
  char* const* environment_;
};

}  // namespace penstock::interpose

// Makes a WatchedEnvironment called `name`, with its memory in the caller's stack frame.
#define PENSTOCK_WATCHED_ENVIRONMENT(name, given, keeps_preload)                                             \
  const bool name##_is_readable = ::penstock::interpose::WatchedEnvironment::is_readable(given);             \
  char* const* const name##_given = name##_is_readable ? (given) : nullptr;                                  \
  auto** const name##_entries =                                                                              \
      static_cast<char**>(__builtin_alloca((::penstock::interpose::WatchedEnvironment::count(name##_given) + \
                                            ::penstock::interpose::WatchedEnvironment::kMostAdded + 1) *     \
                                           sizeof(char*)));                                                  \
  const ::penstock::interpose::WatchedEnvironment name(                                                      \
      given, name##_is_readable ? name##_entries : nullptr,                                                  \
      static_cast<char*>(                                                                                    \
          __builtin_alloca(::penstock::interpose::WatchedEnvironment::preload_bytes(name##_given))),         \
      keeps_preload)
