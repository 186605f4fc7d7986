// What a session does now, looked at once a second by a thread of its own: who asks sees the same as all
// others, and costs nothing more. Of a session in which nothing runs: all that it did.
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
  ~LiveView();  // waits for a look that is under way
  LiveView(const LiveView&) = delete;
  LiveView& operator=(const LiveView&) = delete;

  // Members of a JSON object: "running": true, ... Any thread.
  std::string json() const;
  // Ends the looks; false where one is under way still after so long.
  bool end(std::chrono::milliseconds most);

 private:
  struct Seen {
    Session session;
    Look look;  // its words are in the session
  };
  struct Point {
    double at_s = 0;     // since 1970: its end
    double seconds = 0;  // its length
    double bytes_read = 0;
    double bytes_written = 0;
    double operations = 0;
  };

  void work(const std::stop_token& stop);
  Result<void> try_look();
  Result<void> look();
  bool is_of_here(const RecordingProcess& process);
  void draw_all(const Session& session);
  std::string written(const Look& look, const Change& change,
                      const std::vector<RecordingProcess>& processes) const;
  void publish(std::string text);

  const std::filesystem::path folder_;
  const SessionFilter filter_;
  // Of the looking thread alone.
  std::unique_ptr<Seen> before_;
  std::deque<Point> history_;
  std::map<std::string, bool> known_;  // files of running processes: whether they are really theirs
  bool over_ = false;                  // nothing runs, and all was looked at since
  bool exact_ = true;                  // the history is what happened when, not what is likely

  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  std::string text_;
  bool ended_ = false;
  std::jthread thread_;  // last: it ends before what it uses
};

}  // namespace penstock
