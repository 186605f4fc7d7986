// The list of the wrapped functions. PENSTOCK_WRAP puts an entry for each into a section of its own, which
// slots.cpp reads.
#pragma once

#include <atomic>

namespace penstock::interpose {

struct Wrapped {
  const char* name;
  std::atomic<void*>* real;  // the replaced function; null until it is found
};

}  // namespace penstock::interpose

#define PENSTOCK_WRAPPED(symbol, found)                                                                   \
  namespace {                                                                                             \
  __attribute__((used,                                                                                    \
                 section("penstock_wrapped"))) constinit ::penstock::interpose::Wrapped wrapped_##symbol{ \
      .name = #symbol, .real = found};                                                                    \
  }
