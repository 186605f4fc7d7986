// What this library does when it is loaded into a process, and when the process exits.
#include <pthread.h>

#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/hooks/control.hpp"
#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/loader_walk.hpp"
#include "profiling/interpose/hooks/processes.hpp"
#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/writer/environment.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"

namespace penstock::interpose {

namespace {

// Runs in the thread that loads the library: before main(), or inside dlopen().
__attribute__((constructor)) void loaded() noexcept {
  note_libc();
  keep_environment();
  note_working_directory();
  watch_threads();
  // pthread_atfork() waits for forks that are running now. Later forks run these handlers, and so wait for
  // walks.
  pthread_atfork(&before_fork, &after_fork_in_parent, &after_fork_in_child);
  if (is_preloaded()) {
    open_session();
  }
  note_window_steps();
}

// Runs at exit(). Other threads may still run and add to the session's file.
__attribute__((destructor)) void unloaded() noexcept {
  settle();
  end_session(PENSTOCK_ENDED);
}

}  // namespace

}  // namespace penstock::interpose
