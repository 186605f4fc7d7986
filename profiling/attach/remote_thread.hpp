// Begins a thread in another process, the target. docs/profiling.md says why that is safe there.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "io_backends/core/result.hpp"
#include "profiling/attach/target.hpp"

namespace penstock {

struct RemoteThread {
  RemoteThread() = default;
  RemoteThread(std::uint64_t runs, std::uint64_t on) : function(runs), argument(on) {}

  std::uint64_t function = 0;  // void* (*)(void*)
  std::uint64_t argument = 0;
  // If not 0, memory is mapped in the target first. Then `fill` is called with its address (readable and
  // writable): it writes to it, and sets function and argument. The first `code_bytes` then become code,
  // which is not writable any more.
  std::uint64_t memory_bytes = 0;
  std::uint64_t code_bytes = 0;
  std::function<Result<void>(std::uint64_t memory, RemoteThread& thread)> fill;
};

struct StartedThread {
  std::chrono::nanoseconds stopped{};  // how long one of its threads was stopped
  std::uint64_t memory = 0;            // address of the mapped memory, or 0
};

// Waits up to `patience` until one of the target's threads is at a safe point, from which it can begin
// another one. The new thread has all signals blocked, and is not joined.
//
// All of this, `fill` too, runs in a helper: a forked process in a session of its own. If a terminal or a
// user kills this process, the helper still finishes, so that the target's thread is not left stopped half
// way, which would be its end. Call it in a process without other threads that hold locks: the helper is a
// fork and allocates.
Result<StartedThread> begin_thread_in(const Target& target, RemoteThread thread,
                                      std::chrono::milliseconds patience);

}  // namespace penstock
