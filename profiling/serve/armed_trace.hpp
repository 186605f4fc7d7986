// A trace that the user started in the page of `penstock profile serve`. It records the calls of all
// processes of a session for a limited time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "profiling/live/trace_window.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Only one thread may use an instance. The destructor switches the trace off in all processes in which this
// object switched it on.
class ArmedTrace {
 public:
  explicit ArmedTrace(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Switches the trace on now, for the duration `time`. If the trace is on already, it now ends `time` after
  // this call. Error: not_found if no process of the session runs.
  Result<void> arm(std::chrono::seconds time);
  void disarm();
  // Switches the trace on in processes that are new since the last call. When the time is over, switches it
  // off in all processes. Must be called about every 50 ms while armed() is true.
  void update();
  bool armed() const { return until_ != std::chrono::steady_clock::time_point(); }

  // Returns a JSON object with the remaining time and, for at most 1,000 processes, from when to when their
  // calls were recorded. When no trace is on, the object describes the last one.
  Json json() const;

 private:
  const std::filesystem::path folder_;
  std::unique_ptr<TraceWindow> window_;
  std::chrono::steady_clock::time_point until_;
  std::chrono::steady_clock::time_point next_update_;
};

}  // namespace penstock
