// A stage of the input pipeline: it pulls from what is upstream of it, owns its threads and its bounded
// queue, and stops when it is destroyed. The last one that pulls is the accelerator.
#pragma once

#include <string>
#include <vector>

#include "io_backends/core/result.hpp"

namespace penstock {

// Where the time of one stage went, in seconds summed over the threads that serve it: each second of such a
// thread is in exactly one of the three. Stages that share threads see each other's work as waiting: while a
// worker decodes, resizing is starved and reading is blocked.
struct StageTally {
  std::string stage;     // "read", "decode", "resize", "accelerator"
  double busy_s = 0;     // at work
  double starved_s = 0;  // waited for something to work on
  double blocked_s = 0;  // waited for room downstream
};

// Hands out items in a fixed order whatever its own threads do. next() is called by one thread.
// Destroying a stage asks its threads to stop, waits for the sample that each has in hand, and throws the
// rest away; it never waits for anybody to pull.
template <class T>
class Stage {
 public:
  virtual ~Stage() = default;
  Stage() = default;
  Stage(const Stage&) = delete;
  Stage& operator=(const Stage&) = delete;

  // The next item, or a null one at the end of the data. Waits. After an error or the end it keeps saying so.
  // Errc::interrupted within a tenth of a second once interrupted().
  virtual Result<T> next() = 0;

  // So far. Any thread.
  virtual std::vector<StageTally> times() const = 0;
};

}  // namespace penstock
