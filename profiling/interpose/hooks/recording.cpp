// Begins and ends recording, and switches from one session file to the next.
//
// Threads: the holder of Control, one at a time. rewrite_new_objects() is for any thread.
// Locks: Control is held by the caller; rewrite_new_objects() takes it.
// Signals: Control blocks all of them in its thread.
// Memory: redirect_calls() may call malloc, outside of change_session().
//
// How a change works: session.changes is set, a barrier runs in all threads, and then this thread waits until
// no log is inside an update. From then on no thread writes to the session; threads that want to write wait
// in Update. So inside change_session() this thread must not
//
// - make an Update;
// - wait for a lock that a thread may hold while it waits in Update (a ring's, or that of pending
//   operations);
// - call malloc, because a thread may be waiting inside malloc.
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
#include "profiling/interpose/writer/session_lifetime.hpp"
#include "profiling/interpose/writer/system.hpp"
#include "profiling/interpose/writer/windows.hpp"

namespace penstock::interpose {

constinit Recording recording;

namespace {

constinit OwnedLock control_lock;
constexpr long kSignalMaskBytes = 8;

// Makes a memory barrier in all threads (membarrier()). After it they all see what this thread wrote before
// it, and this thread sees what they wrote. So they need no fence of their own in each call (Update). A
// process must register once for the fast barrier. If the fast barrier fails, the slow one is used. False if
// the kernel does not have this system call, or a filter forbids it.
bool barrier_in_all_threads() noexcept {
  static bool registered = false;
  registered =
      registered || system_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return (registered && system_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) ||
         system_call(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

// Calls `action` while no thread is inside an update. Returns its result, an errno value. session.changes is
// cleared also after an error: until then every counted call of the program waits.
template <typename Action>
int change_session(Action action) noexcept {
  session.changes.store(true, std::memory_order_seq_cst);
  const int failed = !barrier_in_all_threads() ? ENOSYS : !wait_for_updates() ? EBUSY : action();
  session.changes.store(false, std::memory_order_seq_cst);
  return failed;
}

}  // namespace

// Makes direct system calls, because sigprocmask() may be a function of another library. The signals are
// blocked for this thread only.
Control::Control() noexcept {
  sigset_t all_signals;
  sigfillset(&all_signals);
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, as_argument(&all_signals), as_argument(&saved_signal_mask_),
              kSignalMaskBytes);
  new (&guard_) LockGuard(control_lock);
}

// The lock is released first: a handler may run as soon as signals are unblocked, and may want the lock.
Control::~Control() {
  guard_.~LockGuard();
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, as_argument(&saved_signal_mask_), 0, kSignalMaskBytes);
}

// Called in a fork's child. If another thread of the parent held Control, it had blocked signals only for
// itself.
void forget_parents_control() noexcept {
  control_lock.reset();
  forget_parents_windows();
}

// The process has run without being recorded. What was known of its descriptors, streams and operations may
// be wrong, so it is forgotten first. Logs are retired before the new file begins, so that no thread finds a
// log of an old file together with the new state.
int begin_recording(const char* folder, penstock_start_reason reason, bool segments) noexcept {
  const int failed = change_session([&]() -> int {
    forget_range(0, ~0U);
    stream_process += 1;
    forget_async_io();
    note_working_directory();
    retire_logs();
    errno = 0;
    if (!begin_session(folder, reason, segments, nullptr)) {
      return session_failure();
    }
    reclaim_sessions(&is_written_to);
    return 0;
  });
  recording.began_here = failed == 0;
  begin_window();
  return failed;
}

// count_finished_async_io() makes Updates and takes the locks of rings, so it is called before
// change_session(). Order inside the change: the file is ended while the state is still `running`, then the
// state is set, then logs are retired. unmap_past_files() keeps the addresses valid, because a call that
// began before may still add to them.
int end_recording() noexcept {
  count_finished_async_io();
  label_with_steps();
  const int failed = change_session([&]() -> int {
    stop_session();
    session.state.store(SessionState::off, std::memory_order_release);
    retire_logs();
    unmap_past_files();
    reclaim_sessions(&is_written_to);
    return 0;
  });
  if (failed == 0) {
    recording = {};
  }
  return failed;
}

// The new file takes over before logs are retired: threads wait in Update until both are done, and then
// continue in the new file. Names are copied while the old file is still mapped. If the new file cannot be
// made, nothing is recorded from then on, because the old file has ended already.
int switch_file(penstock_start_reason reason) noexcept {
  label_with_steps();
  return change_session([&]() -> int {
    char folder[sizeof(session.folder)];
    memcpy(folder, session.folder, sizeof(folder));
    const char* previous_base = session.base;
    stop_session();
    const bool has_started = begin_session(folder, reason, false, session.header);
    begin_window();
    if (has_started) {
      copy_names_to_session(previous_base);
    } else {
      session.state.store(SessionState::off, std::memory_order_release);
    }
    retire_logs();
    reclaim_sessions(&is_written_to);
    return has_started ? 0 : session_failure();
  });
}

// Finding all slots takes some milliseconds. Part of what the program does meanwhile is not counted, so the
// kernel's counters begin after it.
SlotCounts redirect_calls() noexcept {
  const SlotCounts rewritten = rewrite_slots();
  change_session([]() -> int {
    begin_kernel_counters();
    return 0;
  });
  return rewritten;
}

// Called by wrapped calls, in any thread, with no lock held; also in a fork's child, where a thread that does
// not exist may hold the loader's lock. It must not be called inside malloc, which a holder of Control may
// need; only the wrappers of open() and dlsym() and their variants call it. A handler may call it: it never
// interrupts a holder of Control, where signals are blocked. But a handler that interrupted malloc must not
// come here after a load: rewrite_slots() may call malloc. Cheap checks come first, without a lock. Control
// is taken only if there is something new.
void rewrite_new_objects() noexcept {
  if (!may_walk_objects()) {
    if (loader_is_stuck()) {
      session.may_have_loaded.store(false);  // a search needs a walk, which is not possible here
    }
    return;
  }
  if (!search_may_find_objects()) {
    return;
  }
  const Control control;
  // This is checked again, because the previous holder of Control has probably rewritten the slots already.
  if (recording.began_here && is_running() && has_unseen_objects()) {
    rewrite_slots();
  }
}

}  // namespace penstock::interpose
