// Attaching to a process that runs: libpenstock_profile.so is loaded into it by a thread of its own, its
// calls are led to the library's wrappers, and back again.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io_backends/core/result.hpp"
#include "profiling/attach/target.hpp"

namespace penstock {

struct Attached {
  std::uint64_t slots = 0;
  std::uint64_t objects = 0;
  std::chrono::nanoseconds stopped{0};  // the one thread that was
};
struct KeptCalls {
  bool on = false;
  std::optional<std::uint64_t> limit;  // bytes; 0: none; not given: what the library takes by itself
};
// Its session begins in `folder` (absolute, empty, its owner's). already_exists where it is watched;
// timed_out where no thread of it came to a place from which that could be done.
Result<Attached> attach_to(const Target& target, const std::string& library,
                           const std::filesystem::path& folder, const KeptCalls& trace);

struct Detached {
  std::uint64_t slots = 0;  // that hold their first value again
  std::uint64_t objects = 0;
  std::uint64_t unrestored = 0;  // hold something else
  std::uint64_t unloaded = 0;    // went with their objects
  std::string folder;
  std::chrono::nanoseconds stopped{0};
};
// not_found where nobody has attached to it.
Result<Detached> detach_from(const Target& target);

}  // namespace penstock
