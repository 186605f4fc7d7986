// Begins and ends recording, and switches from one session file to the next.
//
// Threads: only the thread that holds Control, the lock for changing what is recorded. Exception: any thread
// may call rewrite_new_objects().
// Locks: the caller holds Control, but rewrite_new_objects() takes it itself.
// Signals: Control blocks all signals of the thread that holds it.
// Memory: redirect_calls() may call malloc, but not inside change_session().
//
// How change_session() makes a change: it sets session.is_changing, which makes each new update wait (Update,
// counting.hpp). Then it runs a barrier in all threads, and waits until no thread is inside an update that
// began before. From then on threads wait in Update before they add anything to the session. Exceptions: an
// OuterUpdate and the totals of a thread (counting.hpp), which write only to memory that the thread's log has
// already. The waiting threads may hold locks or be inside malloc. So inside change_session() this thread
// must not
//
// - make an Update;
// - wait for a lock that a thread may hold while it waits in Update: the lock of a ring, or that of pending
//   operations;
// - call malloc.
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
#include "profiling/interpose/hooks/processes.hpp"
#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"
#include "profiling/interpose/writer/system.hpp"
#include "profiling/interpose/writer/windows.hpp"

namespace penstock::interpose {

constinit Recording recording;

namespace {

constinit OwnedLock control_lock;
constexpr long kSignalMaskBytes = 8;

// Makes a memory barrier in all threads (membarrier()). After it, all threads see what this thread wrote
// before, and this thread sees what they wrote. So other threads need no fence of their own in each counted
// call (Update). Returns false if the kernel does not have this system call, or a filter forbids it.
// A process must register once for the fast barrier. If the fast barrier fails, the slow one is used.
bool barrier_in_all_threads() noexcept {
  static bool is_registered = false;
  is_registered =
      is_registered || system_call(SYS_membarrier, MEMBARRIER_CMD_REGISTER_PRIVATE_EXPEDITED, 0, 0) == 0;
  return (is_registered && system_call(SYS_membarrier, MEMBARRIER_CMD_PRIVATE_EXPEDITED, 0, 0) == 0) ||
         system_call(SYS_membarrier, MEMBARRIER_CMD_GLOBAL, 0, 0) == 0;
}

// Calls `action` while no thread is inside an update. Returns an errno value: that of `action`, or EBUSY or
// ENOSYS if `action` was not called. session.is_changing is cleared also after an error, because every
// counted call of the program waits while it is set.
template <typename Action>
int change_session(Action action) noexcept {
  session.is_changing.store(true, std::memory_order_seq_cst);
  const int error = !barrier_in_all_threads() ? ENOSYS : !wait_for_updates() ? EBUSY : action();
  session.is_changing.store(false, std::memory_order_seq_cst);
  return error;
}

}  // namespace

// Blocks all signals of this thread, and then takes the lock. Signals are blocked by a direct system call,
// because sigprocmask() may be a function of another library.
Control::Control() noexcept {
  sigset_t all_signals;
  sigfillset(&all_signals);
  system_call(SYS_rt_sigprocmask, SIG_BLOCK, as_argument(&all_signals), as_argument(&saved_signal_mask_),
              kSignalMaskBytes);
  new (&guard_) LockGuard(control_lock);
}

// Releases the lock before it unblocks signals: once they are unblocked, a handler may run that takes the
// lock itself.
Control::~Control() {
  guard_.~LockGuard();
  system_call(SYS_rt_sigprocmask, SIG_SETMASK, as_argument(&saved_signal_mask_), 0, kSignalMaskBytes);
}

// Frees the lock in a fork's child. If another thread of the parent held Control, that thread does not exist
// here, and would never release it. No signals need to be unblocked, because that thread had blocked only its
// own.
void forget_parents_control() noexcept {
  control_lock.reset();
  forget_parents_windows();
}

// Forgets what is known of descriptors, streams and operations before the session begins: it may be wrong,
// because the process has run without being recorded. Logs are retired, so each thread moves its log to the
// new file at its next call. Logs are retired before the file begins, so that no thread finds a log of an old
// file while the state is already `running`.
int begin_recording(const char* folder, penstock_start_reason reason, bool segments) noexcept {
  watch_forks();
  const int error = change_session([&]() -> int {
    forget_range(0, ~0U);
    stream_generation += 1;
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
  recording.began_at_run_time = error == 0;
  begin_window();
  return error;
}

// count_finished_async_io() makes Updates and takes the locks of rings, so it must be called before
// change_session().
// Order inside the change: the file ends while the state is still `running`. Then the state becomes `off`.
// Then logs are retired, which makes each thread leave its log at its next call. A call that began before the
// change may still add to the old file's counters. So unmap_past_files() puts other memory at the old file's
// addresses.
int end_recording() noexcept {
  count_finished_async_io();
  label_with_steps();
  const int error = change_session([&]() -> int {
    stop_session();
    session.state.store(SessionState::off, std::memory_order_release);
    retire_logs();
    unmap_past_files();
    reclaim_sessions(&is_written_to);
    return 0;
  });
  if (error == 0) {
    recording = {};
  }
  return error;
}

// The new file begins, and then logs are retired: each thread moves its log to the new file at its next call.
// Threads wait in Update until all of this is done, so no call is lost. Names are copied from the old file,
// which is still mapped then. If the new file cannot be made, recording ends, because the old file has ended
// already.
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

// Rewrites slots, and then reads the kernel's counters again. rewrite_slots() takes some milliseconds, and
// part of what the program does meanwhile is not counted. So the kernel's counters, with which the counted
// bytes are compared, begin only after rewrite_slots().
SlotCounts redirect_calls() noexcept {
  const SlotCounts rewritten = rewrite_slots();
  change_session([]() -> int {
    begin_kernel_counters();
    return 0;
  });
  return rewritten;
}

// Redirects the calls of objects that were loaded since the last search. A search looks for slots in all
// loaded objects (slots.hpp). Takes Control only if there are new objects; the checks before that need no
// lock. If may_walk_objects() is false, nothing is done: a thread that does not exist in this process may
// hold the loader's lock.
//
// Callers: wrapped calls, in any thread, with no lock held. They must not be inside malloc, because a holder
// of Control may wait for malloc's lock while the caller waits for Control, and because rewrite_slots() may
// call malloc. So only the wrappers of open() and dlsym() and their variants call it.
// Signals: a handler that calls it never interrupts a holder of Control, whose signals are blocked. But while
// objects may have been loaded, a handler that interrupted malloc must not call it.
void rewrite_new_objects() noexcept {
  if (!may_walk_objects()) {
    if (loader_is_stuck()) {
      session.may_have_new_objects.store(false);  // without the loader's lock, new objects cannot be found
    }
    return;
  }
  if (!search_may_find_objects()) {
    return;
  }
  const Control control;
  // Checked again under Control, because the thread that held it before has probably rewritten these slots.
  if ((is_preloaded() || (recording.began_at_run_time && is_running())) && has_unseen_objects()) {
    rewrite_slots();
  }
}

}  // namespace penstock::interpose
