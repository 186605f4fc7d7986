// What this library does when it is loaded into a process, and when the process exits.
//
// Threads: on_load() runs in the thread that loads the library, before main() or inside dlopen(). on_unload()
// runs in the thread that calls exit(); other threads may still run.
// Locks: inside dlopen() this thread holds the loader's recursive lock.
// Memory: save_environment(), pthread_key_create() and pthread_atfork() may call malloc.
// Signals: not blocked. A handler, or another thread, may run wrappers before on_load() has ended.
// Forks: none is watched before recording begins (watch_forks()).
#include "profiling/interpose/counting/paths.hpp"
#include "profiling/interpose/counting/thread_log.hpp"
#include "profiling/interpose/hooks/control.hpp"
#include "profiling/interpose/hooks/libc_names.hpp"
#include "profiling/interpose/hooks/processes.hpp"
#include "profiling/interpose/hooks/recording.hpp"
#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/hooks/streams.hpp"
#include "profiling/interpose/writer/environment.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"

namespace penstock::interpose {

namespace {

// The constructor of the library. It begins a session only if the library was preloaded (is_preloaded()).
// Otherwise the request of `penstock profile attach`, or penstock_profile_start(), begins the session later.
__attribute__((constructor)) void on_load() noexcept {
  note_libc();
  save_environment();
  note_working_directory();
  watch_threads();
  if (is_preloaded()) {
    watch_forks();
    open_session();
    const Control control;
    rewrite_slots(false);
  }
  read_steps_per_window();
}

// Ends the session, inside exit(). Other threads may still be running, and may add to the session's file
// after end_session().
__attribute__((destructor)) void on_unload() noexcept {
  count_unseen_transfers();
  note_unflushed_bytes(count_bytes_to_flush());
  end_session(PENSTOCK_ENDED);
}

}  // namespace

}  // namespace penstock::interpose
