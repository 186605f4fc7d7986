// The list of the wrapped functions. It is a section of the library, into which PENSTOCK_WRAP puts an entry
// for each function. wrapped_names.cpp reads it.
#pragma once

#include <atomic>
#include <cstdint>

namespace penstock::interpose {

struct WrappedFunction {
  const char* name;
  std::atomic<void*>* real;  // the replaced function; null until it is found
  // Returns the address of the wrapper, if it has no symbol (library_copies.hpp); otherwise null.
  uintptr_t (*wrapper)() = nullptr;
  unsigned copy = 0;
};

}  // namespace penstock::interpose

#define PENSTOCK_WRAPPED(symbol, found)                                                                      \
  namespace {                                                                                                \
  __attribute__((                                                                                            \
      used, section("penstock_wrapped"))) constinit ::penstock::interpose::WrappedFunction wrapped_##symbol{ \
      .name = #symbol, .real = found};                                                                       \
  }
