// The names that wrappers stand in for: PENSTOCK_WRAP puts each into a section of its own.
#pragma once

#include <atomic>

namespace penstock::interpose {

struct Wrapped {
  const char* name;
  std::atomic<void*>* real;  // the function that it stands in for, once it was found
};

}  // namespace penstock::interpose

#define PENSTOCK_WRAPPED(symbol, found)                                                                   \
  namespace {                                                                                             \
  __attribute__((used,                                                                                    \
                 section("penstock_wrapped"))) constinit ::penstock::interpose::Wrapped wrapped_##symbol{ \
      .name = #symbol, .real = found};                                                                    \
  }
