#include "profiling/interpose/hooks/recording.hpp"

#include <errno.h>
#include <linux/membarrier.h>
#include <string.h>

#include <new>

#include "profiling/interpose/counting/asynchronous.hpp"
#include "profiling/interpose/counting/descriptors.hpp"
#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/writer/system.hpp"
#include "profiling/interpose/writer/windows.hpp"

namespace penstock::interpose {

constinit Recording recording;

namespace {

constinit OwnedLock control_lock;
constexpr long kSetBytes = 8;

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

}  // namespace

Control::Control() noexcept {
  sigset_t all;
  sigfillset(&all);
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, word(&all), word(&before_), kSetBytes);
  new (&hold_) Hold(control_lock);
}

Control::~Control() {
  hold_.~Hold();
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, word(&before_), 0, kSetBytes);
}

void forget_parents_control() noexcept {
  control_lock.reset();
  forget_parents_windows();
}

// In a process that goes on nothing that was known of its descriptors and streams holds.
int begin_recording(const char* folder, penstock_begun started, bool segments) noexcept {
  const int failed = change([&]() -> int {
    forget_range(0, ~0U);
    stream_process += 1;
    forget_asynchronous();
    note_working_directory();
    retire_logs();
    errno = 0;
    if (!begin_session(folder, started, segments, nullptr)) {
      return session_failure();
    }
    reclaim_sessions(&is_written_to);
    return 0;
  });
  recording.began_here = failed == 0;
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
    recording = {};
  }
  return failed;
}

int cut(penstock_begun started) noexcept {
  name_last_steps();
  return change([&]() -> int {
    char folder[sizeof(session.folder)];
    memcpy(folder, session.folder, sizeof(folder));
    const char* before = session.base;
    stop_session();
    const bool begins = begin_session(folder, started, false, session.header);
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

// To find them all takes as long as a program does much: what it did meanwhile, past us, does not count.
Rewritten take_slots() noexcept {
  const Rewritten rewritten = rewrite_slots();
  change([]() -> int {
    begin_kernel_counters();
    return 0;
  });
  return rewritten;
}

// Called by watched calls, with nothing held, in children of forks as well: there the loader's lock may be
// held by a thread that is not there.
void look_for_objects() noexcept {
  if (!may_walk_objects()) {
    if (loader_is_stuck()) {
      session.may_have_loaded.store(false);  // what cannot be loaded need not be looked for
    }
    return;
  }
  if (!worth_a_look()) {
    return;
  }
  const Control control;
  // Who was waited for has most likely looked already.
  if (recording.began_here && is_running() && has_unseen_objects()) {
    rewrite_slots();
  }
}

}  // namespace penstock::interpose
