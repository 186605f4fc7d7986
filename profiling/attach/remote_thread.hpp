// Begins a thread in another process. docs/profiling.md says why that is safe there.
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
  // Memory that the process is given first, or 0: then `fill` is called with where it lies (readable and
  // writable), to write to it and to say what function and argument are; its first `code_bytes` become code.
  std::uint64_t memory_bytes = 0;
  std::uint64_t code_bytes = 0;
  std::function<Result<void>(std::uint64_t memory, RemoteThread& thread)> fill;
};

struct StartedThread {
  std::chrono::nanoseconds stopped{};  // so long one of its threads was
  std::uint64_t memory = 0;            // where what it was given lies
};

// Waits up to `patience` until one of its threads comes to a place where it may be made to begin another one.
// The new thread has all signals blocked, and nobody waits for it. All of this, `fill` too, is done by a
// process of its own in a session of its own: whoever kills this one does not leave the other stopped half
// way, which would be its end.
Result<StartedThread> begin_thread_in(const Target& target, RemoteThread thread,
                                      std::chrono::milliseconds patience);

}  // namespace penstock
