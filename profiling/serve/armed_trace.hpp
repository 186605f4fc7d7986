// Tracing that the page has asked for: for so long, of all that runs in a session meanwhile.
#pragma once

#include <chrono>
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "profiling/live/trace_window.hpp"
#include "results/record/record.hpp"

namespace penstock {

// One thread. Disarms what it has armed when it dies.
class ArmedTrace {
 public:
  explicit ArmedTrace(std::filesystem::path folder) : folder_(std::move(folder)) {}

  // From now on for so long, whatever was asked before. not_found where nothing runs.
  Result<void> arm(std::chrono::seconds time);
  void disarm();
  // Arms what has started since and disarms in time: to be called every 50 ms or so while armed.
  void look();
  bool armed() const { return until_ != std::chrono::steady_clock::time_point(); }

  // A JSON object: for how long still, and for which time each process kept its calls, of the last one too.
  Json json() const;

 private:
  const std::filesystem::path folder_;
  std::unique_ptr<TraceWindow> window_;
  std::chrono::steady_clock::time_point until_;
  std::chrono::steady_clock::time_point next_look_;
};

}  // namespace penstock
