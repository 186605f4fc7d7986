// A trace that was requested in the page. It covers all processes of a session for a limited time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "profiling/live/trace_window.hpp"
#include "results/record/record.hpp"

namespace penstock {

// Used by one thread only. The destructor switches off all that arm() switched on.
class ArmedTrace {
 public:
  explicit ArmedTrace(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Traces from this moment for `time`, which replaces the time of an earlier call. Error: not_found if no
  // process of the session runs.
  Result<void> arm(std::chrono::seconds time);
  void disarm();
  // Switches the trace on in new processes, and off when its time is over. Must be called about every 50 ms
  // while armed.
  void update();
  bool armed() const { return until_ != std::chrono::steady_clock::time_point(); }

  // A JSON object: the remaining time, and for each process how long its calls were recorded. After the end
  // it describes the last trace.
  Json json() const;

 private:
  const std::filesystem::path folder_;
  std::unique_ptr<TraceWindow> window_;
  std::chrono::steady_clock::time_point until_;
  std::chrono::steady_clock::time_point next_update_;
};

}  // namespace penstock
