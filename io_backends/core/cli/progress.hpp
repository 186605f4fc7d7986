// Shows the progress of long work on stderr, and prints warnings and notes. The progress is one line. Work
// redraws it at most ten times a second, and a new note redraws it at once.
#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

namespace penstock {

// A progress line on stderr. advance() costs one relaxed atomic add and, if `shown` is true, a read of the
// clock and sometimes a redraw. So a loop may call it for each sample. Any thread may call the functions. The
// destructor erases the line. Nothing is printed if `shown` is false.
class Progress {
 public:
  // `total`: the amount of work; 0 if it is not known, and then the line shows no percentage and no remaining
  // time. `unit`: what is counted, such as "files" or "MiB".
  // `counter`: where to count what is done, if others read the count, too; it must outlive the line.
  Progress(bool shown, std::string_view title, uint64_t total, std::string_view unit,
           std::atomic<uint64_t>* counter = nullptr);
  ~Progress();
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void advance(uint64_t by);
  void set_note(std::string_view note);  // text after the numbers, such as the name of the current object

  // The figures of all lines that exist now, also of those that are not shown. Lines with the same title and
  // unit are one entry.
  struct Figures {
    std::string title;
    std::string unit;
    uint64_t done = 0;
    uint64_t total = 0;  // 0: not known
  };
  static std::vector<Figures> all();

 private:
  void draw(bool force);
  std::string_view unit_for(uint64_t count) const;  // without its "s" for 1

  const bool shown_;
  const std::string title_;
  const std::string unit_;
  const uint64_t total_;
  const std::chrono::steady_clock::time_point start_;
  std::atomic<uint64_t> own_counter_{0};
  std::atomic<uint64_t>& done_;  // own_counter_, or the counter that others read
  std::atomic<int64_t> next_draw_ns_{0};
  std::mutex mutex_;
  std::string note_;
};

// warn() prints "penstock: warning: TEXT" on stderr, note() prints "penstock: TEXT"; printable() escapes the
// text. If a progress line is shown, it is erased first. The next redraw shows it below the text. Any thread
// may call them.
void warn(std::string_view text);
void note(std::string_view text);
void note_once(std::string_view text);  // prints each text only once in this process
// Makes warn(), note() and note_once() print nothing. In a job, all ranks call it except the one that prints
// for all. Must be called before any other thread starts.
void silence_notes();
// For a stderr that is a file or a pipe: from now on Progress prints whole lines, at most one a second, and
// no control characters. Must be called before any other thread starts.
void show_progress_as_lines();

}  // namespace penstock
