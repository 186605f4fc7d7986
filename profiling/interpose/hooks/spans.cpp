// penstock_profile_span() of span_abi.h: adds a span that the program reports to the log of the calling
// thread.
//
// Threads: any thread.
// Locks: none is held on entry. step_ended() may wait until no thread is inside an update (Update,
// counting.hpp), so the Update of this thread ends before step_ended() is called.
#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/hooks/control.hpp"
#include "profiling/interpose/writer/windows.hpp"

extern "C" void penstock_profile_span(const penstock_span* span) {
  using namespace penstock::interpose;
  ThreadLog* log = thread_log();
  if (log == nullptr) {
    return;
  }
  {
    Update update(*log);
    if (update.is_nested()) {
      count_drop(session.header->dropped_spans);
      return;
    }
    add_span(*log, *span);
  }
  if (steps_per_window != 0 && !program_reports_steps() && span->component == PENSTOCK_TRAIN &&
      span->number != PENSTOCK_NO_NUMBER) {
    step_ended(span->number);
  }
}
