// Progress of long work: one line on stderr, redrawn at most ten times a second, only where wanted.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>

namespace penstock {

// advance() is a relaxed add and now and then a line: fit for a loop over samples. Any thread. The line is
// wiped when the Progress dies. Does nothing when `shown` is false.
class Progress {
 public:
  // `total` 0: unknown, no percentage and no time left. `unit`: "files", "MiB" ...
  Progress(bool shown, std::string_view what, std::uint64_t total, std::string_view unit);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(std::uint64_t by);
  void set_note(std::string_view note);  // behind the numbers: what is worked on now

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

// A line of diagnostics to stderr: "penstock: warning: ...", as printable() makes it. Wipes a progress line
// that is there; its next redraw comes below. Any thread.
void warn(std::string_view text);
void note(std::string_view text);
void note_once(std::string_view text);  // nothing where this process has noted that already
// From now on neither says anything: for the ranks of a job that another one speaks for. Before any thread.
void leave_output_to_another_rank();

}  // namespace penstock
