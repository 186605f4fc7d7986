// Attaches the profiler to a running process, and detaches from it. To attach, a new thread in that process
// loads libpenstock_profile.so. From then on the process's I/O calls go to the library's wrappers, until the
// detach.
//
// Two processes are involved. The functions here run in the main thread of `penstock profile attach` or
// `detach`. They allocate memory freely. They read and write the memory of the other process, which is called
// the target. One thread of the target is stopped for milliseconds, and starts a new thread (tracee.hpp). The
// new thread does the rest.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "io_backends/core/result.hpp"
#include "profiling/attach/target.hpp"

namespace penstock {

// The result of an attach or a detach. A slot is a pointer in the target's memory through which the target's
// code calls a function.
struct AttachOutcome {
  // after attach: slots that lead to the library; after detach: slots that have their original value again
  uint64_t slots = 0;
  // number of loaded ELF files that contain the slots counted in `slots`
  uint64_t objects = 0;
  // after detach: slots that could not be restored, because the program has changed their value
  uint64_t unrestored = 0;
  uint64_t unloaded = 0;                    // after detach: slots whose ELF file was unloaded
  std::string folder;                       // after detach: the session's folder
  std::chrono::nanoseconds stopped_for{0};  // how long one thread of the target was stopped
  double stopped_ms() const { return double(stopped_for.count()) / 1e6; }
};
// Starts a session of the target in `folder` (absolute, empty, owned by the target's user). With `trace` the
// session also records each call separately, in up to `trace_limit` bytes (0: no limit; not given: the
// library's default). Errors: already_exists if a session of the target runs already; timed_out if none of
// the target's threads came to a point where it holds no lock of libc (tracee.hpp), or if the library does
// not answer.
Result<AttachOutcome> attach_to(const Target& target, const std::string& library,
                                const std::filesystem::path& folder, bool trace,
                                std::optional<uint64_t> trace_limit);
// Ends the session that attach_to() started. Error: not_found if the process was not attached to.
Result<AttachOutcome> detach_from(const Target& target);

}  // namespace penstock
