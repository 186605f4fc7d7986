// Attaches to a running process and detaches from it: a thread of its own loads libpenstock_profile.so there,
// and its calls are led to the library's wrappers, or back again.
//
// Two processes are involved. The functions here run in the main thread of `penstock profile attach` or
// `detach`; they read and write the other process's memory, and allocate freely. In the other process, called
// the target, one thread is stopped for milliseconds (tracee.hpp), and a new thread does the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io_backends/core/result.hpp"
#include "profiling/attach/target.hpp"

namespace penstock {

// What came of attaching or detaching.
struct AttachOutcome {
  std::uint64_t slots = 0;  // that lead to the library now, or have their first value again
  std::uint64_t objects = 0;
  std::uint64_t unrestored = 0;         // of a detach: that have another value
  std::uint64_t unloaded = 0;           // likewise: that were unloaded with their objects
  std::string folder;                   // likewise: of the session
  std::chrono::nanoseconds stopped{0};  // how long one thread was
  double stopped_ms() const { return static_cast<double>(stopped.count()) / 1e6; }
};
// The target's session begins in `folder` (absolute, empty, owned by the target's user). already_exists if it
// is watched; timed_out if no thread of it came to a safe point. `trace`: every call is kept, up to
// `trace_limit` bytes of them (0: no limit; not given: the library's default).
Result<AttachOutcome> attach_to(const Target& target, const std::string& library,
                                const std::filesystem::path& folder, bool trace,
                                std::optional<std::uint64_t> trace_limit);
// not_found if the process was not attached to.
Result<AttachOutcome> detach_from(const Target& target);

}  // namespace penstock
