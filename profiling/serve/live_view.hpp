// Shows the present activity of a session. A thread of its own inspects the session once a second, or less
// often if an inspection takes longer than a quarter of a second. All pages that show the session get the
// same JSON object, so a second page costs nothing more. If no process of the session runs, the object
// describes the whole run.
//
// Threads: the server's main thread makes the view, calls json() and ends it. The inspecting thread
// (inspect_until_stopped()) is the only one that uses the members from previous_progress_ to
// history_is_exact_, so these need no lock. Only the main thread starts processes (side_job.hpp).
// Locks: mutex_ guards only json_members_ and has_ended_. It is held while a pointer is copied, never while
// files are read.
// Memory: both threads may allocate.
// Signals: SIGINT, SIGTERM and SIGHUP set a flag that the main thread reads (interrupt.hpp). No handler uses
// this class.
#pragma once

#include <condition_variable>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "profiling/live/recording_process.hpp"
#include "profiling/report/session_top.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

class LiveView {
 public:
  LiveView(std::filesystem::path folder, SessionFilter filter);
  ~LiveView();  // waits until a running inspection has ended
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // Returns the newest members of the page's JSON object ("running": true, ...). Any thread may call this;
  // the server calls it in its main thread.
  std::shared_ptr<const Json> json() const;
  // Ends the inspections. False if one is still running after `timeout`. Called in the main thread.
  bool end(std::chrono::milliseconds timeout);

 private:
  void inspect_until_stopped(const std::stop_token& stop);
  Result<void> try_inspect();
  Result<void> inspect();
  bool writes_to_this_session(const RecordingProcess& process);
  void show_whole_run(const Session& session);
  Json members_of(const SessionProgress& progress, const Change& change,
                  const std::vector<RecordingProcess>& processes) const;
  void publish(Json members);

  const std::filesystem::path folder_;
  const SessionFilter filter_;
  // The result of the last inspection. Used only by the inspecting thread.
  std::unique_ptr<SessionProgress> previous_progress_;
  // one point: [end, in seconds since 1970; its length in seconds; bytes read; bytes written; operations]
  std::deque<Json> history_;
  // The results of writes_to_this_session(), by the path of the process's file in the session's folder
  // (RecordingProcess::file). False: the folder is a copy, and the process writes to the original.
  std::map<std::string, bool> writes_to_session_by_file_;
  // true: the last inspection found no running process, so it showed the whole run
  bool shows_whole_run_ = false;
  // true: the history has the times of single calls; false: it has estimates
  bool history_is_exact_ = true;

  mutable std::mutex mutex_;
  std::condition_variable_any ended_changed_;
  std::shared_ptr<const Json> json_members_;
  bool has_ended_ = false;
  std::jthread thread_;  // the last member, so that it is destroyed first
};

}  // namespace penstock
