// Tracing that is switched on in processes that record already, and off again: of one process, or of all
// that a session has, those that begin meanwhile included.
#pragma once

#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "profiling/live/recording_process.hpp"

namespace penstock {

// Which processes are meant.
struct TraceTargets {
  std::vector<std::filesystem::path> folders;  // all that run there
  std::vector<RecordingProcess> processes;     // these, whatever file they go on with
  std::vector<std::uint64_t> ranks;            // of the folders', only these; empty: all
};
// By words of a command line: a process's number, or a session's folder. not_found for a process that is not
// watched and for a folder that is not there.
Result<TraceTargets> trace_targets(std::span<const std::string> words);

// What became of one of those that are meant: for how long it kept its calls, and why it did not.
struct TracedProcess {
  RecordingProcess process;  // with the file that it wrote last
  std::int64_t from_ns = 0;  // realtime: when it was switched; 0: never here, it was so before or has ended
  std::int64_t to_ns = 0;    // likewise: when a window has ended for it; 0: not yet
  bool was_on = false;       // before a window, which leaves it as it is
  bool ended = false;        // the process; else it may go on without being watched
  std::string failed;        // why it could not be armed or disarmed; "" where it could
};

// Arms or disarms all that run now: also in the files that they go on with meanwhile, and the children that
// they fork meanwhile. not_found where there is none.
Result<std::vector<TracedProcess>> switch_trace(const TraceTargets& targets, bool on);

// Arms while it lives. A child that is forked of an armed process is armed from its begin; what is executed,
// and what begins otherwise, from the next look on. All that was armed, and their children, are disarmed in
// the end; what kept its calls before does so afterwards.
class TraceWindow {
 public:
  explicit TraceWindow(TraceTargets targets) : targets_(std::move(targets)) {}
  ~TraceWindow() { end(); }
  TraceWindow(const TraceWindow&) = delete;
  TraceWindow& operator=(const TraceWindow&) = delete;

  // Arms what is meant and is not; to be called again now and then. not_found where nothing has run yet, or a
  // folder cannot be read.
  Result<void> look();
  bool over() const { return running() == 0; }  // none of them runs any more, or could be armed
  std::size_t running() const;
  void end();
  const std::vector<TracedProcess>& processes() const { return traced_; }

 private:
  bool has_word_of_armed(const RecordingProcess& process) const;
  void meet(const RecordingProcess& process);
  void note_ended(const std::vector<RecordingProcess>& running);
  bool disarm_all(const std::vector<RecordingProcess>& running);
  bool disarm_ended();

  TraceTargets targets_;
  std::vector<TracedProcess> traced_;  // as they were met
  bool first_ = true;
  bool ended_ = false;
};

}  // namespace penstock
