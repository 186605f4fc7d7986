// The live view's thread and what it publishes. It only reads the files of the recorded processes.
//
// Threads: inspect_until_stopped() and all functions that it calls run in the inspecting thread. json() and
// end() run in the server's main thread (live_view.hpp).
// Locks: mutex_ is held only where a comment says so.
// Memory: everything may allocate: this is penstock's own process.
// Signals: no handler calls this code.
#include "profiling/serve/live_view.hpp"

#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <utility>

#include "profiling/attach/target.hpp"
#include "profiling/report/session_report.hpp"
#include "profiling/session/transfers.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kViewInterval{1};
// Inspections take at most 1/4 of the time: the pause after an inspection takes at least 3 times as long as
// the inspection.
constexpr int kViewShareDivisor = 4;
// Points in the history of a running session: ten minutes, if an inspection is made each second.
constexpr size_t kMostHistoryPoints = 600;
constexpr double kMostRunPoints = 300;  // points in the history of a whole run
constexpr size_t kMostListedFiles = 50;
constexpr size_t kMostNamedProcesses = 1000;  // limit for the list of processes

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// True if both paths lead to the same file, for example through a link. May take long: each stat() may wait
// for a remote file system.
bool is_same_file(const std::string& one, const std::string& other) {
  struct stat a {};
  struct stat b {};
  return ::stat(one.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

Json process_json_of(const RecordingProcess& process) {
  return Json{{"pid", process.pid},     {"rank", process.rank < 0 ? Json(nullptr) : Json(process.rank)},
              {"trace", process.trace}, {"here", process.on_this_machine},
              {"host", process.host},   {"command", process.command}};
}

}  // namespace

// Publishes a first JSON object before the thread begins, so that json() always has one to return.
LiveView::LiveView(std::filesystem::path folder, SessionFilter filter)
    : folder_(std::move(folder)), filter_(std::move(filter)) {
  publish({{"looked", false}, {"running", false}, {"error", ""}});
  thread_ = std::jthread([this](const std::stop_token& stop) { inspect_until_stopped(stop); });
}

// thread_ is the last member, so it is destroyed first. Its destructor requests a stop and joins the thread,
// while all members that the thread uses still exist.
LiveView::~LiveView() = default;

// Returns the newest JSON object. Any thread may call this. mutex_ is held only while the pointer is copied.
std::shared_ptr<const Json> LiveView::json() const {
  const std::scoped_lock lock(mutex_);
  return json_members_;
}

// Replaces the JSON object that json() returns. Runs in the inspecting thread, and once in the main thread,
// in the constructor. The caller must not hold mutex_. Memory is allocated before mutex_ is locked and freed
// after it is unlocked, so mutex_ is held only briefly.
void LiveView::publish(Json members) {
  auto published = std::make_shared<const Json>(std::move(members));
  const std::scoped_lock lock(mutex_);
  json_members_.swap(published);
}

// Asks the inspecting thread to end, and waits until it has ended or `timeout` has passed. Runs in the main
// thread. request_stop() is called without mutex_, because it wakes inspect_until_stopped(), which then needs
// mutex_. Even a request just before that function begins to wait is not lost: wait_until() itself tests the
// stop token.
bool LiveView::end(std::chrono::milliseconds timeout) {
  thread_.request_stop();
  std::unique_lock lock(mutex_);
  return ended_changed_.wait_for(lock, timeout, [this] { return has_ended_; });
}

// The inspecting thread's main function. If an inspection fails, its error is published in place of a result,
// and the next inspection tries again.
// After each inspection the thread waits at least three times as long as the inspection took. So inspections
// of a large session take at most a quarter of the time.
// The thread's last action is to set has_ended_, while mutex_ is locked. After that, end() may let the
// process exit.
void LiveView::inspect_until_stopped(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Clock::time_point begin = Clock::now();
    if (const Result<void> inspected = try_inspect(); !inspected.ok())
      publish({{"looked", true}, {"running", false}, {"error", inspected.error().message()}});
    const Clock::time_point now = Clock::now();
    const auto next_time = std::max(begin + kViewInterval, now + (kViewShareDivisor - 1) * (now - begin));
    std::unique_lock lock(mutex_);
    ended_changed_.wait_until(lock, stop, next_time, [] { return false; });
  }
  const std::scoped_lock lock(mutex_);
  has_ended_ = true;
  ended_changed_.notify_all();
}

// True if the process writes to this session. A copy of a session also contains files of running processes,
// but they write to the original. The answer is kept in writes_to_session_by_file_, because finding it
// requires reading /proc/PID/maps.
bool LiveView::writes_to_this_session(const RecordingProcess& process) {
  if (!process.on_this_machine) return true;
  const auto [known, inserted] = writes_to_session_by_file_.try_emplace(process.file, true);
  if (inserted) {
    const auto session = running_session(static_cast<pid_t>(process.pid));
    known->second = !session || session->file == process.file || is_same_file(session->file, process.file) ||
                    std::filesystem::path(session->file).parent_path() == folder_;
  }
  return known->second;
}

// Calls inspect() and turns exceptions into errors. Otherwise an exception would end the whole process, and a
// trace that is on would stay on. An exception may mean that memory is short, so the previous SessionProgress
// is freed.
Result<void> LiveView::try_inspect() {
  try {
    return inspect();
  } catch (const std::exception& problem) {
    previous_progress_.reset();
    shows_whole_run_ = false;
    return make_error(Errc::exhausted, "cannot inspect '{}': {}", folder_.string(), problem.what());
  }
}

// Makes one inspection, in the inspecting thread. mutex_ is not held, except in publish(). If the session
// cannot be read, previous_progress_ and history_ do not change.
// The processes are listed before the session is read, so that the last writes of a process are never missed:
// a process that ends in between counts as running and is inspected once more.
Result<void> LiveView::inspect() {
  PENSTOCK_ASSIGN(std::vector<RecordingProcess> processes, recording_processes(folder_));
  std::erase_if(processes, [&](const RecordingProcess& process) { return !writes_to_this_session(process); });
  if (processes.empty() && shows_whole_run_) return success();
  const std::vector<std::filesystem::path> folders{folder_};
  PENSTOCK_ASSIGN(Session session, open_session(folders));
  auto progress = std::make_unique<SessionProgress>(measure_progress(std::move(session), filter_));
  const Change change = change_of(previous_progress_.get(), *progress, kMostListedFiles);
  if (previous_progress_ != nullptr) {
    history_.push_back(Json::array({now_s(), change.seconds, double(change.all.bytes_read),
                                    double(change.all.bytes_written), double(change.all.operations)}));
    if (history_.size() > kMostHistoryPoints) history_.pop_front();
  }
  if (shows_whole_run_) {  // a process began to run after the session had ended
    history_.clear();
    history_is_exact_ = true;
  }
  shows_whole_run_ = processes.empty();
  if (shows_whole_run_) show_whole_run(progress->session);
  // If the session has ended, there are no rates any more, so the totals of the whole run are shown.
  const Change run_change = shows_whole_run_ ? change_of(nullptr, *progress, kMostListedFiles) : Change{};
  publish(members_of(*progress, shows_whole_run_ ? run_change : change, processes));
  previous_progress_ = std::move(progress);
  if (shows_whole_run_) writes_to_session_by_file_.clear();
  return success();
}

// Runs in the inspecting thread. Replaces the history of the last minutes by that of the whole run.
void LiveView::show_whole_run(const Session& session) {
  const FileSums sums(session);
  const SessionSummary summary = inspect_session(session, sums, filter_, "file", 1).summary;
  const TransferSeries series(summary.begin_ns, summary.span_s, kMostRunPoints);
  std::vector<double> bytes_read(series.points());
  std::vector<double> bytes_written(series.points());
  std::vector<double> operations(series.points());
  each_transfer(session, sums, filter_, summary.io_is_union, [&](const Transfer& transfer) {
    if (transfer.kind != TransferKind::metadata)
      series.add(transfer.kind == TransferKind::read ? bytes_read : bytes_written, transfer, transfer.bytes);
    series.add(operations, transfer, transfer.operations);
  });
  history_is_exact_ = summary.io_is_union;
  history_.clear();
  const double begin_s = double(summary.begin_ns) / 1e9;
  for (size_t i = 0; i < series.points(); ++i)
    history_.push_back(Json::array({begin_s + double(i + 1) * series.interval_s(), series.interval_s(),
                                    bytes_read[i], bytes_written[i], operations[i]}));
}

// Runs in the inspecting thread. Makes the members of the JSON object from the result of an inspection.
Json LiveView::members_of(const SessionProgress& progress, const Change& change,
                          const std::vector<RecordingProcess>& processes) const {
  Json process_list = Json::array();
  for (size_t i = 0; i < processes.size() && i < kMostNamedProcesses; ++i)
    process_list.push_back(process_json_of(processes[i]));
  return Json{{"looked", true},
              {"running", !processes.empty()},
              {"error", ""},
              {"at_s", now_s()},
              {"running_s", progress.running_s},
              {"files", progress.files.size()},
              {"bytes_read", progress.all.bytes_read},
              {"bytes_written", progress.all.bytes_written},
              {"operations", progress.all.operations},
              {"change",
               {{"seconds", change.seconds},
                {"bytes_read", change.all.bytes_read},
                {"bytes_written", change.all.bytes_written},
                {"operations", change.all.operations},
                {"files", change.files}}},
              {"hottest", hottest_json(change)},
              {"process_count", processes.size()},
              {"processes", std::move(process_list)},
              {"history_is_exact", history_is_exact_},
              {"history", std::vector<Json>(history_.begin(), history_.end())}};
}

}  // namespace penstock
