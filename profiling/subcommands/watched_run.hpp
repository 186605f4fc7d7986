// Running a program as `profile run` does: in front of the same terminal, with the same descriptors, and with
// every signal that is meant for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

struct WatchedRun {
  std::string program;            // the file
  std::vector<std::string> argv;  // its words, the first one included
  std::vector<std::string> environment;
  // Called when it has ended and its number is still its own.
  std::function<void(std::uint32_t pid)> on_end;
};

// Waits for its end and returns its exit code, 128 + signal where one killed it. Signals that somebody sends
// to this process meanwhile go to the program; those of a terminal reach it anyway, and are skipped. One
// thread.
Result<int> run_watched(const WatchedRun& run);

}  // namespace penstock
