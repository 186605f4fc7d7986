// Threads: any thread may call every function, except silence_notes() and
// show_progress_as_lines(), which must be called before other threads start.
// Locks: Progress::mutex_ guards note_ and is held during a redraw. Terminal::mutex guards noted_texts and
// the list of lines. No thread takes one of them while it holds the other.
// Memory: every print allocates its line. A signal handler must not call these functions.
// Ctrl-C: this file does not check for a signal. A print may wait for the terminal.
#include "io_backends/core/cli/progress.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <set>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/units.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;
constexpr auto kRedrawInterval = std::chrono::milliseconds(100);
// Into a file: a line each second for ten seconds, then one in ten seconds.
constexpr auto kFirstLineInterval = std::chrono::seconds(1);
constexpr auto kLineInterval = std::chrono::seconds(10);

int64_t now_ns() {
  return Clock::now().time_since_epoch().count();
}

constexpr std::string_view kEraseLine = "\r\x1b[K";

// What stderr shows. It is global, because a note of any thread must first erase the progress line that
// another thread has drawn.
struct Terminal {
  std::atomic<bool> progress_shown{false};  // true: a progress line is on the terminal now
  // true: print nothing, because another rank prints the notes; set before threads start
  bool silent = false;
  bool is_file = false;  // true: stderr cannot erase a line; set before threads start
  std::mutex mutex;      // guards `noted_texts` and `lines`
  std::set<std::string, std::less<>> noted_texts;  // texts that note_once() has printed
  std::vector<const Progress*> lines;              // all that exist

  void print_line(std::string_view kind, std::string_view text) {
    if (silent) return;
    const std::string line = fmt::format(
        "{}penstock: {}{}\n", progress_shown.exchange(false) ? kEraseLine : "", kind, printable(text));
    std::fwrite(line.data(), 1, line.size(), stderr);
  }
};
Terminal terminal;

}  // namespace

Progress::Progress(bool shown, std::string_view title, uint64_t total, std::string_view unit,
                   std::atomic<uint64_t>* counter)
    : shown_(shown),
      title_(title),
      unit_(unit),
      total_(total),
      start_(Clock::now()),
      done_(counter == nullptr ? own_counter_ : *counter) {
  {
    const std::lock_guard lock(terminal.mutex);
    terminal.lines.push_back(this);
  }
  if (shown_) draw(true);
}

std::vector<Progress::Figures> Progress::all() {
  const std::lock_guard lock(terminal.mutex);
  std::vector<Figures> all;
  for (const Progress* const line : terminal.lines) {
    const auto same = std::find_if(all.begin(), all.end(), [&](const Figures& one) {
      return one.title == line->title_ && one.unit == line->unit_;
    });
    Figures& figures = same == all.end() ? all.emplace_back(Figures{line->title_, line->unit_}) : *same;
    figures.done += line->done_.load(std::memory_order_relaxed);
    figures.total += line->total_;
  }
  return all;
}

Progress::~Progress() {
  {
    const std::lock_guard lock(terminal.mutex);
    std::erase(terminal.lines, this);
  }
  if (terminal.progress_shown.exchange(false)) std::fwrite(kEraseLine.data(), 1, kEraseLine.size(), stderr);
}

void Progress::advance(uint64_t by) {
  done_.fetch_add(by, std::memory_order_relaxed);
  if (shown_) draw(false);
}

void Progress::set_note(std::string_view note) {
  if (!shown_) return;
  {
    std::lock_guard lock(mutex_);
    note_ = note;
  }
  draw(!terminal.is_file);
}

std::string_view Progress::unit_for(uint64_t count) const {
  const bool is_singular = count == 1 && unit_.ends_with('s');
  return std::string_view(unit_).substr(0, unit_.size() - (is_singular ? 1 : 0));
}

void Progress::draw(bool force) {
  const int64_t now = now_ns();
  const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
  std::chrono::nanoseconds interval = kRedrawInterval;
  if (terminal.is_file) interval = seconds < 10 ? kFirstLineInterval : kLineInterval;
  int64_t due_ns = next_draw_ns_.load(std::memory_order_relaxed);
  if (!force && now < due_ns) return;
  // If several threads want to draw at the same time, only one succeeds in this exchange and draws. The
  // others return at once, unless `force` is true: then they draw as well.
  if (!next_draw_ns_.compare_exchange_strong(due_ns, now + interval.count()) && !force) return;
  std::lock_guard lock(mutex_);
  const uint64_t done_items = done_.load(std::memory_order_relaxed);
  std::string line = fmt::format("{}{}: ", terminal.is_file ? "penstock: " : kEraseLine, title_);
  if (total_ > 0) {
    line += fmt::format("{} of {} {}", format_count(done_items), format_count(total_), unit_for(total_));
    line += fmt::format("  {:3.0f}%", 100.0 * double(done_items) / double(total_));
    if (done_items > 0 && done_items < total_ && seconds > 1.0) {
      const double left_s = seconds * double(total_ - done_items) / double(done_items);
      line += fmt::format("  {:.0f} s left", left_s);
    }
  } else if (done_items > 0) {
    line += fmt::format("{} {}", format_count(done_items), unit_for(done_items));
  }
  if (!note_.empty()) line += (line.ends_with(": ") ? "" : "  ") + note_;
  if (terminal.is_file) line += '\n';
  std::fwrite(line.data(), 1, line.size(), stderr);
  terminal.progress_shown = !terminal.is_file;
}

void warn(std::string_view text) {
  terminal.print_line("warning: ", text);
}
void note(std::string_view text) {
  terminal.print_line("", text);
}
void note_once(std::string_view text) {
  {
    const std::lock_guard lock(terminal.mutex);
    if (!terminal.noted_texts.emplace(text).second) return;
  }
  note(text);
}

void silence_notes() {
  terminal.silent = true;
}
void show_progress_as_lines() {
  terminal.is_file = true;
}

}  // namespace penstock
