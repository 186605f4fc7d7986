// Gives windows their numbers and labels. windows.hpp names the threads that may call each function.
//
// Threads: any thread uses the atomic variables. The other variables are used only by the holder of Control,
// or when the process ends or executes another program.
// Locks: none of its own. Relaxed order is enough for the atomic variables, because only labels depend on
// them.
// Forks: a child starts without windows (forget_parents_windows()).
#include "profiling/interpose/writer/windows.hpp"

#include <stdio.h>

#include "profiling/interpose/writer/session_lifetime.hpp"

namespace penstock::interpose {

constinit std::atomic<uint32_t> steps_per_window{0};

namespace {

uint32_t window_count = 0;  // number of the latest window that has a number
bool window_has_number = false;
bool has_program_label = false;  // the program gave the window a label

// The training steps that ended in the current file, in any thread. When the file ends, its window is
// labelled with them.
std::atomic<uint64_t> first_step{kNoStep};
std::atomic<uint64_t> steps_done{0};  // number of the last ended step, plus 1
std::atomic<uint64_t> last_switch_number{kNoStep};

}  // namespace

void begin_window() noexcept {
  window_has_number = has_program_label = false;
  first_step.store(kNoStep, std::memory_order_relaxed);
  steps_done.store(0, std::memory_order_relaxed);
}

void label_window(const char* label) noexcept {
  if (!window_has_number) {
    ++window_count;
    window_has_number = true;
  }
  add_event(PENSTOCK_EVENT_WINDOW, window_count, label);
}

void set_program_label(const char* label) noexcept {
  has_program_label = label != nullptr && *label != '\0';
  label_window(label);
}

// Notes that step `number` has ended. Several threads may call this at the same time: the loops keep the
// smallest and the largest number that was given.
void note_step(uint64_t number) noexcept {
  if (number == last_switch_number.load(std::memory_order_relaxed)) {
    return;
  }
  uint64_t first = first_step.load(std::memory_order_relaxed);
  while (number < first && !first_step.compare_exchange_weak(first, number, std::memory_order_relaxed)) {
  }
  uint64_t end = steps_done.load(std::memory_order_relaxed);
  while (number >= end && !steps_done.compare_exchange_weak(end, number + 1, std::memory_order_relaxed)) {
  }
}

// Labels the window with its steps. Called when the window ends, because only then its steps are known: the
// last window may have fewer steps than the others. Does nothing if the program reports no steps.
void label_with_steps() noexcept {
  const uint64_t first = first_step.load(std::memory_order_relaxed);
  const uint64_t end = steps_done.load(std::memory_order_relaxed);
  if (steps_per_window == 0 || has_program_label || first == kNoStep || end <= first) {
    return;
  }
  char label[64];
  if (end - first == 1) {
    snprintf(label, sizeof(label), "step %llu", static_cast<unsigned long long>(first));
  } else {
    snprintf(label, sizeof(label), "steps %llu to %llu", static_cast<unsigned long long>(first),
             static_cast<unsigned long long>(end - 1));
  }
  label_window(label);
}

uint64_t last_switch_step() noexcept {
  return last_switch_number;
}

void set_last_switch_step(uint64_t number) noexcept {
  last_switch_number = number;
}

void forget_parents_windows() noexcept {
  window_count = 0;
  begin_window();
}

}  // namespace penstock::interpose
