// Serves the requests of `penstock profile attach` and `detach` in a process that has this library
// (process_abi.h, penstock_request). attach() begins recording and detach() ends it.
//
// Threads: everything here runs in a thread that the requesting process started in this process.
// Locks: attach() and detach() run with Control held, the lock for changing what is recorded (recording.hpp).
// It is taken before all other locks of this library.
// Memory: on the stack; snprintf() is used only for numbers and texts. redirect_calls() may call malloc (in
// dlopen()).
// Signals: Control blocks all signals of this thread.
// Order: `done` is stored last, so that the requesting process reads a complete answer.
#include <errno.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>

#include "profiling/interpose/hooks/recording.hpp"
#include "profiling/interpose/hooks/slots.hpp"
#include "profiling/interpose/writer/session_lifetime.hpp"
#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {
namespace {

void attach(penstock_request& request) noexcept {
  if (is_running()) {
    request.failed = EALREADY;
    snprintf(request.error_text, sizeof(request.error_text), "its session is '%.200s'", session.folder);
    return;
  }
  request.failed = begin_recording(request.folder, PENSTOCK_START_REASON_ATTACHED, request.trace != 0);
  if (request.failed != 0) {
    return;
  }
  recording.is_attached = true;
  if (request.trace_limit != 0) {
    session.header->trace_limit = request.trace_limit == PENSTOCK_NO_TRACE_LIMIT ? 0 : request.trace_limit;
  }
  if (is_preloaded()) {
    return;
  }
  const SlotCounts rewritten = redirect_calls();
  request.slots = rewritten.slots;
  request.objects = rewritten.objects;
  char event_text[96];
  snprintf(event_text, sizeof(event_text), "attached: %llu slots in %llu objects",
           static_cast<unsigned long long>(rewritten.slots),
           static_cast<unsigned long long>(rewritten.objects));
  add_event(PENSTOCK_EVENT_MARK, 0, event_text);
}

void detach(penstock_request& request) noexcept {
  if (!is_running() || !recording.began_at_run_time) {
    request.failed = EINVAL;
    return;
  }
  const SlotCounts restored = restore_slots();
  request.slots = restored.slots;
  request.objects = restored.objects;
  request.unrestored = restored.unrestored;
  request.unloaded = restored.unloaded;
  memcpy(request.folder, session.folder, sizeof(request.folder));
  request.failed = end_recording();
}

}  // namespace
}  // namespace penstock::interpose

using namespace penstock::interpose;  // NOLINT: another process searches for these names

extern "C" {

// Serves one request in the thread that the requesting process started for it. Takes Control.
__attribute__((visibility("default"))) void* penstock_profile_request(void* request_memory) {
  auto& request = *static_cast<penstock_request*>(request_memory);
  pthread_detach(pthread_self());
  {
    const Control control;
    if (request.kind == PENSTOCK_REQUEST_ATTACH) {
      attach(request);
    } else if (request.kind == PENSTOCK_REQUEST_DETACH) {
      detach(request);
    } else {
      request.failed = ENOSYS;
    }
  }
  // Stored last, with release order: once the requesting process reads 1 here, it can read the whole answer.
  __atomic_store_n(&request.done, 1U, __ATOMIC_RELEASE);
  return nullptr;
}

// The request, written here by the requesting process after the library is loaded.
__attribute__((visibility("default"), used)) penstock_request penstock_profile_asked = {};

}  // extern "C"
