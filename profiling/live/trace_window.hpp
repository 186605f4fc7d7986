// Switches tracing on and off in processes that are already recording. The targets are single processes, or
// all processes of a session, including those that start later.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profiling/live/recording_process.hpp"

namespace penstock {

// The processes to switch.
struct TraceTargets {
  std::vector<std::filesystem::path> folders;  // all processes that record into these folders
  // single processes; a process remains a target when it begins its next session file
  std::vector<RecordingProcess> processes;
  std::vector<uint64_t> ranks;  // only these ranks of the folders' processes; empty: all
};
// Parses arguments: process ids and folders of sessions. Error: not_found for a process that is not watched,
// or a folder that does not exist.
Result<TraceTargets> trace_targets(std::span<const std::string> arguments);

// The result for one target process: how long it recorded its calls, or why it did not.
struct TracedProcess {
  RecordingProcess process;  // described by its most recent file
  // when TraceWindow or switch_trace() switched the trace, since 1970; 0: not switched, because the trace was
  // already as wanted, the process has ended, or the switch failed
  int64_t from_ns = 0;
  int64_t to_ns = 0;       // end of the window, since 1970; 0: the window has not ended
  bool was_on = false;     // true: tracing was on before the window, so end() leaves it on
  bool ended = false;      // true: the process has ended; false: it runs, even if it does not record any more
  std::string error_text;  // why its trace could not be switched; "" if it could
};

// Switches the trace of all running targets on or off. If a target begins another session file or forks a
// child during the call, that file or child is switched too. Error: not_found if no target runs.
Result<std::vector<TracedProcess>> switch_trace(const TraceTargets& targets, bool on);

// Keeps tracing on from the first update() to end(). A child that is forked from a traced process is traced
// from its start. Programs that are executed or started in another way are traced after the next update().
// end() (also called by the destructor) switches tracing off in all processes in which this object switched
// it on, and in their children. Processes that were traced before stay traced. Not thread-safe.
class TraceWindow {
 public:
  explicit TraceWindow(TraceTargets targets) : targets_(std::move(targets)) {}
  ~TraceWindow() { end(); }
  TraceWindow(const TraceWindow&) = delete;
  TraceWindow& operator=(const TraceWindow&) = delete;

  // Switches tracing on in all targets that are not traced. The caller repeats it to find new targets. Error:
  // not_found until a target has run; in the first call also the error of a folder that cannot be read.
  Result<void> update();
  bool finished() const { return running_count() == 0; }  // every target has ended or could not be switched
  size_t running_count() const;
  void end();
  const std::vector<TracedProcess>& processes() const { return traced_; }

 private:
  // True if the process inherited its trace switch from a process in which this object switched it on.
  bool inherited_from_traced(const RecordingProcess& process) const;
  // Adds `process` to traced_ and switches its trace on, if it is a target or a child of a traced process. If
  // it is in traced_ already and has started another file, switches the trace on in that file.
  void add_or_switch_on_again(const RecordingProcess& process);
  // Notes when the processes that are not in `running` stopped recording, and which of them have ended.
  void note_ended(const std::vector<RecordingProcess>& running);
  // switch_off_running() switches the trace off in running processes, switch_off_ended() in the files of
  // processes that have ended. They return true if there was nothing to switch off.
  bool switch_off_running(const std::vector<RecordingProcess>& running);
  bool switch_off_ended();

  TraceTargets targets_;
  std::vector<TracedProcess> traced_;  // in the order in which update() found them
  bool is_first_update_ = true;
  bool ended_ = false;
};

}  // namespace penstock
