// Implements the functions of penstock_profile.h, by which the program begins and ends windows itself. Also
// begins a new window after every N training steps, if PENSTOCK_PROFILE_EVERY or penstock_profile_every() has
// set N.
//
// Threads: any thread of the program, but not inside an update (Update, counting.hpp). To begin a window, a
// thread waits until no thread is inside an update. Inside an update it would wait for itself.
// Locks: none is held on entry. start_window() and stop_window() run with Control held: the lock for changing
// what is recorded (recording.hpp). step_ended() takes Control only if a window ends.
// Memory: paths are on the stack. redirect_calls() may call malloc (in dlopen()), so it runs only while
// session.is_changing is false. While is_changing is true, another thread may hold malloc's lock and wait, in
// a wrapped call that malloc made, for the end of the change. A malloc in this thread would then wait for
// that lock for ever. getenv() reads the program's environment.
// Signals: Control blocks all signals of the thread that holds it.
#include "profiling/interpose/hooks/control.hpp"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <atomic>

#include "profiling/interpose/hooks/recording.hpp"
#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/penstock_profile.h"
#include "profiling/interpose/writer/session_lifetime.hpp"
#include "profiling/interpose/writer/system.hpp"
#include "profiling/interpose/writer/windows.hpp"

namespace penstock::interpose {

namespace {

uint64_t step_calls = 0;  // number of calls of penstock_profile_step(); guarded by Control
std::atomic<bool> program_called_step{false};

// Writes the absolute path of `path` to `to`, without "/" at its end. Returns false if `path` is empty, if
// the working directory is not known, or if the path is too long.
bool make_absolute(const char* path, char* to, size_t to_bytes) noexcept {
  const size_t length = strlen(path);
  if (length == 0) {
    return false;
  }
  size_t end = 0;
  if (path[0] != '/') {
    if (system_call(SYS_getcwd, as_argument(to), long(to_bytes)) <= 0) {
      return false;
    }
    end = strlen(to);
    to[end++] = '/';
  }
  if (end + length >= to_bytes) {
    return false;
  }
  memcpy(to + end, path, length + 1);
  for (end += length; end > 1 && to[end - 1] == '/'; --end) {
    to[end - 1] = 0;
  }
  return true;
}

int make_folder(const char* folder) noexcept {
  const long result = system_call(SYS_mkdirat, AT_FDCWD, as_argument(folder), 0700);
  return result == 0 || result == -EEXIST ? 0 : int(-result);
}

int start_recording(const char* folder) noexcept {
  char full_path[sizeof(session.folder)] = {};
  const char* chosen_folder = folder != nullptr ? folder : getenv("PENSTOCK_PROFILE_SESSION");
  if (chosen_folder == nullptr || !make_absolute(chosen_folder, full_path, sizeof(full_path))) {
    return EINVAL;
  }
  int error = make_folder(full_path);
  error = error != 0 ? error : begin_recording(full_path, PENSTOCK_START_REASON_CALLED, wants_segments());
  if (error == 0 && !is_preloaded()) {
    redirect_calls();
  }
  return error;
}

// Begins a window, and returns 0 or an errno value. If nothing is being recorded, recording begins now;
// otherwise only a new file of the session begins. The caller holds Control.
int start_window(const char* folder, const char* label) noexcept {
  if (recording.window_is_open) {
    return EALREADY;
  }
  int error = 0;
  if (!is_running()) {
    error = start_recording(folder);
  } else {
    char full_path[sizeof(session.folder)] = {};
    if (folder != nullptr &&
        (!make_absolute(folder, full_path, sizeof(full_path)) || strcmp(full_path, session.folder) != 0)) {
      return EBUSY;
    }
    error = switch_file(PENSTOCK_START_REASON_CALLED);
  }
  if (error == 0) {
    recording.window_is_open = true;
    set_program_label(label);
  }
  return error;
}

// Ends the window, and returns 0 or an errno value. If recording began with this window, recording ends too.
// Otherwise recording continues in a new file. The caller holds Control.
int stop_window() noexcept {
  if (!recording.window_is_open || !is_running()) {
    recording.window_is_open = false;
    return EINVAL;
  }
  if (recording.began_at_run_time && !recording.is_attached) {
    restore_slots();
    return end_recording();
  }
  const int error = switch_file(PENSTOCK_START_REASON_BETWEEN);
  recording.window_is_open = error != 0;
  return error;
}

}  // namespace

void read_steps_per_window() noexcept {
  if (const char* steps_text = getenv("PENSTOCK_PROFILE_EVERY"); steps_text != nullptr) {
    steps_per_window = uint32_t(strtoul(steps_text, nullptr, 10));
  }
}

// Begins a new window if step `number` is the last step of the current one. Several accelerators may report
// the same step at once, but only the first report may begin the window. Therefore, once this thread holds
// Control, it checks again whether another report has started the window or recording has ended.
void step_ended(uint64_t number) noexcept {
  if (steps_per_window == 0 || !is_running()) {
    return;
  }
  note_step(number);
  if ((number + 1) % steps_per_window != 0) {
    return;
  }
  const Control control;
  if (number == last_switch_step() || !is_running()) {  // another accelerator was first, or recording ended
    return;
  }
  const uint64_t previous_switch_step = last_switch_step();
  set_last_switch_step(number);  // the new file begins after this step
  if (switch_file(PENSTOCK_START_REASON_CALLED) != 0) {
    set_last_switch_step(previous_switch_step);
    return;
  }
  char label[64];
  snprintf(label, sizeof(label), "after step %llu", static_cast<unsigned long long>(number));
  label_window(label);
}

bool program_reports_steps() noexcept {
  return program_called_step.load(std::memory_order_relaxed);
}

}  // namespace penstock::interpose

using namespace penstock::interpose;  // NOLINT: functions that programs call are outside of any namespace

extern "C" {

int penstock_profile_start(const char* folder, const char* label) {
  const Control control;
  return start_window(folder, label);
}

int penstock_profile_stop(void) {
  const Control control;
  return stop_window();
}

int penstock_profile_step(void) {
  uint64_t number = 0;
  program_called_step.store(true, std::memory_order_relaxed);
  {
    const Control control;
    number = step_calls++;
  }
  step_ended(number);
  return 0;
}

int penstock_profile_every(unsigned count) {
  const Control control;
  steps_per_window = count;
  set_last_switch_step(kNoStep);
  return 0;
}

}  // extern "C"
