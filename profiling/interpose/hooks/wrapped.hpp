// The list of the wrapped functions. For each of them PENSTOCK_WRAP puts an entry into a section of the
// library, which slots.cpp reads.
#pragma once

#include <atomic>

namespace penstock::interpose {

struct WrappedFunction {
  const char* name;
  std::atomic<void*>* real;  // the replaced function; null until it is found
};

}  // namespace penstock::interpose

#define PENSTOCK_WRAPPED(symbol, found)                                                                      \
  namespace {                                                                                                \
  __attribute__((                                                                                            \
      used, section("penstock_wrapped"))) constinit ::penstock::interpose::WrappedFunction wrapped_##symbol{ \
      .name = #symbol, .real = found};                                                                       \
  }
