#include "profiling/interpose/control.hpp"

#include <errno.h>
#include <fcntl.h>
#include <linux/membarrier.h>
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <new>

#include "profiling/interpose/asynchronous.hpp"
#include "profiling/interpose/descriptors.hpp"
#include "profiling/interpose/owned_lock.hpp"
#include "profiling/interpose/paths.hpp"
#include "profiling/interpose/penstock_profile.h"
#include "profiling/interpose/session.hpp"
#include "profiling/interpose/slots.hpp"
#include "profiling/interpose/streams.hpp"
#include "profiling/interpose/thread_log.hpp"

namespace penstock::interpose {

std::uint32_t steps_per_window = 0;

namespace {

constinit OwnedLock control_lock;

// What only who holds the lock touches.
bool began_here = false;  // recording began while the program ran, and ends likewise
bool attached = false;    // from outside
bool window_is_open = false;
std::uint32_t windows = 0;  // so far
std::uint64_t steps = 0;    // penstock_profile_step()
std::atomic<bool> steps_are_called{false};
std::atomic<std::uint64_t> last_cut = ~std::uint64_t{0};

// Of the file that is written: steps of any thread, so that its window can be named when it ends.
constexpr std::uint64_t kNoStep = ~std::uint64_t{0};
std::atomic<std::uint64_t> first_step{kNoStep};
std::atomic<std::uint64_t> steps_done{0};  // behind the last of them
bool window_has_number = false;
bool window_has_name = false;  // that the program gave it

// One at a time, and no handler on top of it: one that does I/O would wait for us, and we for it.
class Control {
 public:
  Control() noexcept {
    sigset_t all;
    sigfillset(&all);
    system_call(SYS_rt_sigprocmask, SIG_BLOCK, word(&all), word(&before_), kSetBytes);
    new (&hold_) Hold(control_lock);
  }
  ~Control() {
    hold_.~Hold();
    system_call(SYS_rt_sigprocmask, SIG_SETMASK, word(&before_), 0, kSetBytes);
  }
  Control(const Control&) = delete;
  Control& operator=(const Control&) = delete;

 private:
  static constexpr long kSetBytes = 8;
  sigset_t before_{};
  union {
    Hold hold_;
  };
};

// All threads have seen what this one wrote before, and this one what they did: they pay nothing for it.
bool barrier() noexcept {
  static bool registered = false;
  registered =
      registered || system_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return (registered && system_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) ||
         system_call(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

// `what` gives an errno value; nobody is in the midst of an update while it runs.
template <typename What>
int change(What what) noexcept {
  session.changes.store(true, std::memory_order_seq_cst);
  const int failed = !barrier() ? ENOSYS : !wait_for_updates() ? EBUSY : what();
  session.changes.store(false, std::memory_order_seq_cst);
  return failed;
}

bool is_running() noexcept {
  return session.state.load(std::memory_order_acquire) == SessionState::running;
}

void say_window(const char* label) noexcept {
  if (!window_has_number) {
    ++windows;
    window_has_number = true;
  }
  add_event(PENSTOCK_EVENT_WINDOW, windows, label);
}

// Nothing was said of it yet.
void begin_window() noexcept {
  window_has_number = window_has_name = false;
  first_step.store(kNoStep, std::memory_order_relaxed);
  steps_done.store(0, std::memory_order_relaxed);
}

// Recording begins in a process that goes on: nothing that was known of its descriptors and streams holds.
int begin_recording(const char* folder, penstock_begun begun, bool segments) noexcept {
  const int failed = change([&]() -> int {
    forget_range(0, ~0U);
    stream_process += 1;
    forget_asynchronous();
    note_working_directory();
    retire_logs();
    errno = 0;
    if (!begin_session(folder, begun, segments, nullptr)) {
      return session_failure();
    }
    reclaim_sessions(&is_written_to);
    return 0;
  });
  began_here = failed == 0;
  begin_window();
  return failed;
}

int end_recording() noexcept {
  settle_asynchronous();
  name_last_steps();
  const int failed = change([&]() -> int {
    stop_session();
    session.state.store(SessionState::off, std::memory_order_release);
    retire_logs();
    leave_past_files();
    reclaim_sessions(&is_written_to);
    return 0;
  });
  if (failed == 0) {
    began_here = attached = window_is_open = false;
  }
  return failed;
}

// One file ends, another begins, and no call is lost between them.
int cut(penstock_begun begun) noexcept {
  name_last_steps();
  return change([&]() -> int {
    char folder[sizeof(session.folder)];
    memcpy(folder, session.folder, sizeof(folder));
    const char* before = session.base;
    stop_session();
    const bool begins = begin_session(folder, begun, false, session.header);
    begin_window();
    if (begins) {
      take_names_along(before);
    } else {
      session.state.store(SessionState::off, std::memory_order_release);
    }
    retire_logs();
    reclaim_sessions(&is_written_to);
    return begins ? 0 : session_failure();
  });
}

bool absolute_folder(const char* given, char* to, std::size_t room) noexcept {
  const std::size_t length = strlen(given);
  if (length == 0) {
    return false;
  }
  std::size_t at = 0;
  if (given[0] != '/') {
    if (system_call(SYS_getcwd, word(to), static_cast<long>(room)) <= 0) {
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
  const long made = system_call(SYS_mkdirat, AT_FDCWD, word(folder), 0700);
  return made == 0 || made == -EEXIST ? 0 : static_cast<int>(-made);
}

// To find them all takes as long as a program does much: what it did meanwhile, past us, does not count.
Rewritten take_slots() noexcept {
  const Rewritten rewritten = rewrite_slots();
  change([]() -> int {
    begin_kernel_counters();
    return 0;
  });
  return rewritten;
}

int start_recording(const char* folder) noexcept {
  char absolute[sizeof(session.folder)] = {};
  const char* named = folder != nullptr ? folder : getenv("PENSTOCK_PROFILE_SESSION");
  if (named == nullptr || !absolute_folder(named, absolute, sizeof(absolute))) {
    return EINVAL;
  }
  int failed = make_folder(absolute);
  failed = failed != 0 ? failed : begin_recording(absolute, PENSTOCK_BEGUN_CALLED, wants_segments());
  if (failed == 0 && !is_preloaded()) {
    take_slots();
  }
  return failed;
}

int start(const char* folder, const char* label) noexcept {
  if (window_is_open) {
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
    failed = cut(PENSTOCK_BEGUN_CALLED);
  }
  if (failed == 0) {
    window_is_open = true;
    window_has_name = label != nullptr && *label != '\0';
    say_window(label);
  }
  return failed;
}

int stop() noexcept {
  if (!window_is_open || !is_running()) {
    window_is_open = false;
    return EINVAL;
  }
  if (began_here && !attached) {
    restore_slots();
    return end_recording();
  }
  const int failed = cut(PENSTOCK_BEGUN_BETWEEN);
  window_is_open = failed != 0;
  return failed;
}

void note_step(std::uint64_t number) noexcept {
  if (number == last_cut.load(std::memory_order_relaxed)) {
    return;  // another accelerator's, of the step behind which the file was cut
  }
  std::uint64_t first = first_step.load(std::memory_order_relaxed);
  while (number < first && !first_step.compare_exchange_weak(first, number, std::memory_order_relaxed)) {
  }
  std::uint64_t done = steps_done.load(std::memory_order_relaxed);
  while (number >= done && !steps_done.compare_exchange_weak(done, number + 1, std::memory_order_relaxed)) {
  }
}

void attach(penstock_request& request) noexcept {
  if (is_running()) {
    request.failed = EALREADY;
    snprintf(request.said, sizeof(request.said), "its session is '%.200s'", session.folder);
    return;
  }
  request.failed = begin_recording(request.folder, PENSTOCK_BEGUN_ATTACHED, request.trace != 0);
  if (request.failed != 0) {
    return;
  }
  attached = true;
  if (request.trace_limit != 0) {
    session.header->trace_limit = request.trace_limit == PENSTOCK_NO_TRACE_LIMIT ? 0 : request.trace_limit;
  }
  if (is_preloaded()) {
    return;
  }
  const Rewritten rewritten = take_slots();
  request.slots = rewritten.slots;
  request.objects = rewritten.objects;
  char said[96];
  snprintf(said, sizeof(said), "attached: %llu slots in %llu objects",
           static_cast<unsigned long long>(rewritten.slots),
           static_cast<unsigned long long>(rewritten.objects));
  add_event(PENSTOCK_EVENT_MARK, 0, said);
}

// What the library was loaded by: its thread ran in that memory, and may not have come to its end yet.
void give_back_memory(const penstock_request& request) noexcept {
  static std::uint64_t memory = 0;
  static std::uint64_t bytes = 0;
  static long thread = 0;
  if (memory != 0 && system_call(SYS_tgkill, system_call(SYS_getpid), thread, 0) != 0) {
    system_call(SYS_munmap, static_cast<long>(memory), static_cast<long>(bytes));
    memory = 0;
  }
  if (request.give_back != 0) {
    memory = request.give_back;
    bytes = request.give_back_bytes;
    thread = system_call(SYS_gettid);
  }
}

void detach(penstock_request& request) noexcept {
  if (!is_running() || !began_here) {
    request.failed = EINVAL;
    return;
  }
  const Restored restored = restore_slots();
  request.slots = restored.slots;
  request.objects = restored.objects;
  request.unrestored = restored.differing;
  request.unloaded = restored.unloaded;
  memcpy(request.folder, session.folder, sizeof(request.folder));
  request.failed = end_recording();
}

}  // namespace

void note_window_steps() noexcept {
  if (const char* every = getenv("PENSTOCK_PROFILE_EVERY"); every != nullptr) {
    steps_per_window = static_cast<std::uint32_t>(strtoul(every, nullptr, 10));
  }
}

// What a window had is known when it ends: the last one's steps may be fewer, and a program that tells none
// has no windows.
void name_last_steps() noexcept {
  const std::uint64_t first = first_step.load(std::memory_order_relaxed);
  const std::uint64_t done = steps_done.load(std::memory_order_relaxed);
  if (steps_per_window == 0 || window_has_name || first == kNoStep || done <= first) {
    return;
  }
  char label[64];
  if (done - first == 1) {
    snprintf(label, sizeof(label), "step %llu", static_cast<unsigned long long>(first));
  } else {
    snprintf(label, sizeof(label), "steps %llu to %llu", static_cast<unsigned long long>(first),
             static_cast<unsigned long long>(done - 1));
  }
  say_window(label);
}

void step_ended(std::uint64_t number) noexcept {
  if (steps_per_window == 0 || !is_running()) {
    return;
  }
  note_step(number);
  if ((number + 1) % steps_per_window != 0) {
    return;
  }
  const Control control;
  if (number == last_cut || !is_running()) {  // each accelerator has its step
    return;
  }
  const std::uint64_t before = last_cut;
  last_cut = number;  // from here on it is the file's before
  if (cut(PENSTOCK_BEGUN_CALLED) != 0) {
    last_cut = before;
    return;
  }
  char label[64];
  snprintf(label, sizeof(label), "after step %llu", static_cast<unsigned long long>(number));
  say_window(label);
}

bool calls_its_steps() noexcept {
  return steps_are_called.load(std::memory_order_relaxed);
}

void forget_parents_control() noexcept {
  control_lock.reset();
  windows = 0;
  begin_window();
}

void look_for_objects() noexcept {
  if (!worth_a_look()) {
    return;
  }
  const Control control;
  // Who was waited for has most likely looked already.
  if (began_here && is_running() && has_unseen_objects()) {
    rewrite_slots();
  }
}

}  // namespace penstock::interpose

using namespace penstock::interpose;  // NOLINT: what programs call is outside of any namespace

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
  last_cut = ~std::uint64_t{0};
  return 0;
}

// What penstock_request says is done in a thread that was begun for it.
__attribute__((visibility("default"))) void* penstock_profile_request(void* asked) {
  auto& request = *static_cast<penstock_request*>(asked);
  pthread_detach(pthread_self());
  {
    const Control control;
    give_back_memory(request);
    if (request.asked == PENSTOCK_ASKED_ATTACH) {
      attach(request);
    } else if (request.asked == PENSTOCK_ASKED_DETACH) {
      detach(request);
    } else {
      request.failed = ENOSYS;
    }
  }
  __atomic_store_n(&request.done, 1U, __ATOMIC_RELEASE);
  return nullptr;
}

// Where who asks writes it, once the library is there.
__attribute__((visibility("default"), used)) penstock_request penstock_profile_asked = {};

}  // extern "C"
