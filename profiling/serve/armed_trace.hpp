// A trace that the page has asked for: it covers all processes of a session for a limited time.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "profiling/live/trace_window.hpp"
#include "results/record/record.hpp"

namespace penstock {

// For one thread. The destructor switches off all that arm() switched on.
class ArmedTrace {
 public:
  explicit ArmedTrace(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // Traces from this moment for `time`; this replaces an earlier time. Error: not_found if no process runs.
  Result<void> arm(std::chrono::seconds time);
  void disarm();
  // Switches the trace on in new processes, and off at the end of the time. Must be called about every 50 ms
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
