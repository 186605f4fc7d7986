// Shows the progress of long work on stderr, and prints warnings and notes. The progress is one line that is
// redrawn at most ten times a second.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace penstock {

// advance() is one relaxed add, and sometimes a redraw, so it fits into a loop over samples. Any thread. The
// destructor erases the line. Does nothing if `shown` is false.
class Progress {
 public:
  // `total` 0: unknown, so it shows no percentage and no time left. `unit`: "files", "MiB" ...
  Progress(bool shown, std::string_view what, std::uint64_t total, std::string_view unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t by);
  void set_note(std::string_view note);  // shown after the numbers: the present object of the work

 private:
  void draw(bool force);

  const bool shown_;
  const std::string what_;
  const std::string unit_;
  const std::uint64_t total_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<std::uint64_t> done_{0};
  std::atomic<std::int64_t> next_draw_ns_{0};
  std::mutex mutex_;
  std::string note_;
};

// Prints a line on stderr: "penstock: warning: ...", escaped by printable(). Erases a progress line; its next
// redraw comes below. Any thread.
void warn(std::string_view text);
void note(std::string_view text);
void note_once(std::string_view text);  // prints each text only once in this process
// Silences these functions, for ranks of a job whose messages another rank prints. Call it before any thread
// starts.
void silence_notes();

}  // namespace penstock
