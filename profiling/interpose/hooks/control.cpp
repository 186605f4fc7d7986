// The functions of penstock_profile.h, and windows by training steps.
//
// Threads: any thread of the program, not inside an Update.
// Locks: none is held on entry. start(), stop() and the functions that they call run with Control held.
// step_ended() takes Control only if a window ends.
// Memory: paths are on the stack. redirect_calls() may call malloc (dlopen()). That is outside of any change
// of the session, because another thread may be waiting inside malloc then. getenv() reads the program's
// environment.
// Signals: Control blocks all of them in this thread.
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

std::uint64_t steps = 0;  // number of calls of penstock_profile_step(); under Control
std::atomic<bool> steps_are_called{false};

// Makes `given` absolute, without "/" at its end. False if there is no such path, or if it is too long.
bool absolute_folder(const char* given, char* to, std::size_t room) noexcept {
  const std::size_t length = strlen(given);
  if (length == 0) {
    return false;
  }
  std::size_t at = 0;
  if (given[0] != '/') {
    if (system_call(SYS_getcwd, as_argument(to), static_cast<long>(room)) <= 0) {
      return false;
    }
    at = strlen(to);
    to[at++] = '/';
  }
  if (at + length >= room) {
    return false;
  }
  memcpy(to + at, given, length + 1);
  for (at += length; at > 1 && to[at - 1] == '/'; --at) {
    to[at - 1] = 0;
  }
  return true;
}

int make_folder(const char* folder) noexcept {
  const long made = system_call(SYS_mkdirat, AT_FDCWD, as_argument(folder), 0700);
  return made == 0 || made == -EEXIST ? 0 : static_cast<int>(-made);
}

int start_recording(const char* folder) noexcept {
  char absolute[sizeof(session.folder)] = {};
  const char* named = folder != nullptr ? folder : getenv("PENSTOCK_PROFILE_SESSION");
  if (named == nullptr || !absolute_folder(named, absolute, sizeof(absolute))) {
    return EINVAL;
  }
  int failed = make_folder(absolute);
  failed = failed != 0 ? failed : begin_recording(absolute, PENSTOCK_START_REASON_CALLED, wants_segments());
  if (failed == 0 && !is_preloaded()) {
    redirect_calls();
  }
  return failed;
}

// Begins recording if nothing is recorded; otherwise begins a new file. Control is held.
int start(const char* folder, const char* label) noexcept {
  if (recording.window_is_open) {
    return EALREADY;
  }
  int failed = 0;
  if (!is_running()) {
    failed = start_recording(folder);
  } else {
    char absolute[sizeof(session.folder)] = {};
    if (folder != nullptr &&
        (!absolute_folder(folder, absolute, sizeof(absolute)) || strcmp(absolute, session.folder) != 0)) {
      return EBUSY;
    }
    failed = switch_file(PENSTOCK_START_REASON_CALLED);
  }
  if (failed == 0) {
    recording.window_is_open = true;
    set_program_label(label);
  }
  return failed;
}

// Ends recording if it began with the window; otherwise begins a new file for the time after it. Control is
// held.
int stop() noexcept {
  if (!recording.window_is_open || !is_running()) {
    recording.window_is_open = false;
    return EINVAL;
  }
  if (recording.began_here && !recording.attached) {
    restore_slots();
    return end_recording();
  }
  const int failed = switch_file(PENSTOCK_START_REASON_BETWEEN);
  recording.window_is_open = failed != 0;
  return failed;
}

}  // namespace

void note_window_steps() noexcept {
  if (const char* every = getenv("PENSTOCK_PROFILE_EVERY"); every != nullptr) {
    steps_per_window = static_cast<std::uint32_t>(strtoul(every, nullptr, 10));
  }
}

// The checks before Control need no lock. They are made again under Control, because several accelerators may
// report the same step at once: only the first of them ends the window.
void step_ended(std::uint64_t number) noexcept {
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
  const std::uint64_t before = last_switch_step();
  set_last_switch_step(number);  // from now on this step belongs to the previous file
  if (switch_file(PENSTOCK_START_REASON_CALLED) != 0) {
    set_last_switch_step(before);
    return;
  }
  char label[64];
  snprintf(label, sizeof(label), "after step %llu", static_cast<unsigned long long>(number));
  label_window(label);
}

bool program_reports_steps() noexcept {
  return steps_are_called.load(std::memory_order_relaxed);
}

}  // namespace penstock::interpose

using namespace penstock::interpose;  // NOLINT: functions that programs call are outside of any namespace

extern "C" {

int penstock_profile_start(const char* folder, const char* label) {
  const Control control;
  return start(folder, label);
}

int penstock_profile_stop(void) {
  const Control control;
  return stop();
}

int penstock_profile_step(void) {
  std::uint64_t number = 0;
  steps_are_called.store(true, std::memory_order_relaxed);
  {
    const Control control;
    number = steps++;
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
