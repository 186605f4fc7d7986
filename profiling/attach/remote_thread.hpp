// Starts a thread in another process, the target. docs/explanation/how-profiling-works.md explains why that
// is safe for the target.
#pragma once

#include <chrono>
#include <cstdint>
#include <functional>

#include "io_backends/core/result.hpp"
#include "profiling/attach/target.hpp"

namespace penstock {

struct RemoteThread {
  RemoteThread() = default;
  RemoteThread(uint64_t function_address, uint64_t argument_value)
      : function(function_address), argument(argument_value) {}

  uint64_t function = 0;  // address of the new thread's function: void* (*)(void*)
  uint64_t argument = 0;
  // If memory_bytes is not 0, that many bytes are mapped in the target first, readable and writable. Then
  // `fill` is called with their address. It fills these bytes and sets `function` and `argument`. After that
  // the first `code_bytes` bytes become executable and read-only.
  uint64_t memory_bytes = 0;
  uint64_t code_bytes = 0;
  std::function<Result<void>(uint64_t memory, RemoteThread& thread)> fill;
};

struct StartedThread {
  std::chrono::nanoseconds stopped_for{};  // how long one thread of the target was stopped
  uint64_t memory = 0;                     // address of the mapped memory, or 0
};

// Waits up to `patience` until one of the target's threads is at a point where it holds no lock of libc
// (tracee.hpp), and makes it start the new thread. The new thread has all signals blocked, and is detached.
//
// A helper does all of this, and also calls RemoteThread::fill. The helper is a forked process in a session
// (setsid) of its own. So it still finishes if a terminal or a user kills the calling process. Otherwise a
// thread of the target could keep changed registers, and the target would crash.
// The calling process must have no other thread that can hold a lock. The helper is a fork of it and
// allocates memory, so it would wait for such a lock forever.
Result<StartedThread> start_thread_in(const Target& target, RemoteThread thread,
                                      std::chrono::milliseconds patience);

}  // namespace penstock
