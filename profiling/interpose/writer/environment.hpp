// What a program that this process executes needs in its environment to be watched as well: LD_PRELOAD and
// the variables that begin with PENSTOCK_PROFILE_, as they were when this library was loaded.
#pragma once

#include <cstddef>

namespace penstock::interpose {

// Once, when the library is loaded.
void keep_environment() noexcept;

// An environment as the program gave it, and what was kept in addition. Lives on the stack of who executes:
// no allocation, for it is used between fork() and exec() as well.
class WatchedEnvironment {
 public:
  static constexpr std::size_t kMostAdded = 16;
  // `room` has place for count(given) + kMostAdded + 1 pointers, `preload` for preload_bytes(given).
  WatchedEnvironment(char* const* given, char** room, char* preload) noexcept;
  char* const* get() const noexcept { return result_; }

  static std::size_t count(char* const* given) noexcept;
  static std::size_t preload_bytes(char* const* given) noexcept;

 private:
  char* const* result_;
};

}  // namespace penstock::interpose

// A WatchedEnvironment of that name in the caller's frame.
#define PENSTOCK_WATCHED_ENVIRONMENT(name, given)                                                        \
  const ::penstock::interpose::WatchedEnvironment name(                                                  \
      given,                                                                                             \
      static_cast<char**>(__builtin_alloca((::penstock::interpose::WatchedEnvironment::count(given) +    \
                                            ::penstock::interpose::WatchedEnvironment::kMostAdded + 1) * \
                                           sizeof(char*))),                                              \
      static_cast<char*>(__builtin_alloca(::penstock::interpose::WatchedEnvironment::preload_bytes(given))))
