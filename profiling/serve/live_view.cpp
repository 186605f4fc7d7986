#include "profiling/serve/live_view.hpp"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <chrono>
#include <exception>
#include <iterator>
#include <utility>

#include "profiling/attach/target.hpp"
#include "profiling/report/session_json.hpp"
#include "profiling/report/session_report.hpp"
#include "profiling/session/transfers.hpp"

namespace penstock {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::seconds kViewInterval{1};
constexpr int kViewShare = 4;             // a look takes at most such a part of the time
constexpr std::size_t kMostPoints = 600;  // ten minutes
constexpr double kMostDrawn = 300;        // of a whole run
constexpr std::size_t kMostFiles = 50;
constexpr std::size_t kMostNamedProcesses = 1000;  // that are named

double now_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

bool same_file(const std::string& one, const std::string& other) {
  struct stat a {};
  struct stat b {};
  return ::stat(one.c_str(), &a) == 0 && ::stat(other.c_str(), &b) == 0 && a.st_dev == b.st_dev &&
         a.st_ino == b.st_ino;
}

void append_process(std::string& out, const RecordingProcess& process) {
  fmt::format_to(std::back_inserter(out), R"({{"pid": {}, "rank": {}, "trace": {}, "here": {}, "host": )",
                 process.pid, process.rank < 0 ? "null" : std::to_string(process.rank), process.trace,
                 process.here);
  append_json_text(out, process.host);
  out += ", \"command\": ";
  append_json_text(out, process.command);
  out += "}";
}

}  // namespace

LiveView::LiveView(std::filesystem::path folder, SessionFilter filter)
    : folder_(std::move(folder)), filter_(std::move(filter)) {
  text_ = R"("looked": false, "running": false, "error": "")";
  thread_ = std::jthread([this](const std::stop_token& stop) { work(stop); });
}

LiveView::~LiveView() = default;

std::string LiveView::json() const {
  const std::scoped_lock lock(mutex_);
  return text_;
}

void LiveView::publish(std::string text) {
  const std::scoped_lock lock(mutex_);
  text_ = std::move(text);
}

bool LiveView::end(std::chrono::milliseconds most) {
  thread_.request_stop();
  std::unique_lock lock(mutex_);
  return changed_.wait_for(lock, most, [this] { return ended_; });
}

void LiveView::work(const std::stop_token& stop) {
  while (!stop.stop_requested()) {
    const Clock::time_point begin = Clock::now();
    if (const Result<void> looked = try_look(); !looked.ok()) {
      std::string text = R"("looked": true, "running": false, "error": )";
      append_json_text(text, looked.error().message());
      publish(std::move(text));
    }
    const Clock::time_point now = Clock::now();
    const auto due = std::max(begin + kViewInterval, now + (kViewShare - 1) * (now - begin));
    std::unique_lock lock(mutex_);
    changed_.wait_until(lock, stop, due, [] { return false; });
  }
  const std::scoped_lock lock(mutex_);
  ended_ = true;
  changed_.notify_all();
}

// A copy of a session says that its processes run, and they do: elsewhere.
bool LiveView::is_of_here(const RecordingProcess& process) {
  if (!process.here) return true;
  const auto [known, fresh] = known_.try_emplace(process.file, true);
  if (fresh) {
    const auto running = running_session(static_cast<pid_t>(process.pid));
    known->second = !running || running->file == process.file || same_file(running->file, process.file) ||
                    std::filesystem::path(running->file).parent_path() == folder_;
  }
  return known->second;
}

// An exception in a thread is the end of the process, which then could disarm nothing.
Result<void> LiveView::try_look() {
  try {
    return look();
  } catch (const std::exception& problem) {
    before_.reset();  // its memory may be what is short
    over_ = false;
    return make_error(Errc::exhausted,
                      fmt::format("cannot look at '{}': {}", folder_.string(), problem.what()));
  }
}

Result<void> LiveView::look() {
  PENSTOCK_ASSIGN(std::vector<RecordingProcess> processes, recording_processes(folder_));
  std::erase_if(processes, [&](const RecordingProcess& process) { return !is_of_here(process); });
  if (processes.empty() && over_) return success();
  const std::vector<std::filesystem::path> folders{folder_};
  auto now = std::make_unique<Seen>();
  PENSTOCK_ASSIGN(now->session, open_session(folders));
  now->look = inspect(now->session, filter_);
  const Change change = change_of(before_ == nullptr ? nullptr : &before_->look, now->look, kMostFiles);
  if (before_ != nullptr) {
    history_.push_back({now_s(), change.seconds, static_cast<double>(change.bytes_read),
                        static_cast<double>(change.bytes_written), static_cast<double>(change.operations)});
    if (history_.size() > kMostPoints) history_.pop_front();
  }
  if (over_) {  // it goes on after all: what happens now, again
    history_.clear();
    exact_ = true;
  }
  over_ = processes.empty();
  if (over_) draw_all(now->session);
  // Of what has ended there is no rate, but all that it did.
  const Change whole = over_ ? change_of(nullptr, now->look, kMostFiles) : Change{};
  publish(written(now->look, over_ ? whole : change, processes));
  before_ = std::move(now);
  if (over_) known_.clear();
  return success();
}

// The whole run's history in place of the last minutes'.
void LiveView::draw_all(const Session& session) {
  const FileSums sums(session);
  const SessionSummary summary = inspect_session(session, sums, filter_, "file", 1).summary;
  const TransferSeries series(summary.begin_ns, summary.span_s, kMostDrawn);
  std::vector<double> read(series.points());
  std::vector<double> written(series.points());
  std::vector<double> operations(series.points());
  each_transfer(session, sums, filter_, summary.io_is_union, [&](const Transfer& transfer) {
    if (transfer.kind != TransferKind::metadata)
      series.add(transfer.kind == TransferKind::read ? read : written, transfer, transfer.bytes);
    series.add(operations, transfer, transfer.operations);
  });
  exact_ = summary.io_is_union;
  history_.clear();
  const double begin_s = static_cast<double>(summary.begin_ns) / 1e9;
  for (std::size_t i = 0; i < series.points(); ++i)
    history_.push_back({begin_s + static_cast<double>(i + 1) * series.interval_s(), series.interval_s(),
                        read[i], written[i], operations[i]});
}

std::string LiveView::written(const Look& look, const Change& change,
                              const std::vector<RecordingProcess>& processes) const {
  std::string out;
  const auto to = std::back_inserter(out);
  fmt::format_to(to,
                 R"("looked": true, "running": {}, "error": "", "at_s": {:.3f}, "running_s": {:.3f}, )"
                 R"("files": {}, "bytes_read": {}, "bytes_written": {}, "operations": {}, )"
                 R"("change": {{"seconds": {:.6f}, "bytes_read": {}, "bytes_written": {}, "operations": {}, )"
                 R"("files": {}}}, "hottest": [)",
                 !processes.empty(), now_s(), look.running_s, look.points.size(), look.bytes_read,
                 look.bytes_written, look.operations, change.seconds, change.bytes_read, change.bytes_written,
                 change.operations, change.files);
  for (const Look::Point& point : change.hottest) {
    out += &point == change.hottest.data() ? "{\"path\": " : ", {\"path\": ";
    append_json_text(out, point.path);
    fmt::format_to(to, R"(, "bytes_read": {}, "bytes_written": {}, "operations": {}}})", point.bytes_read,
                   point.bytes_written, point.operations);
  }
  fmt::format_to(to, R"(], "process_count": {}, "processes": [)", processes.size());
  for (std::size_t i = 0; i < processes.size() && i < kMostNamedProcesses; ++i) {
    if (i > 0) out += ", ";
    append_process(out, processes[i]);
  }
  fmt::format_to(to, R"(], "history_is_exact": {}, "history": [)", exact_);
  for (const Point& point : history_)
    fmt::format_to(to, "{}[{:.3f}, {:.6f}, {:.10g}, {:.10g}, {:.10g}]",
                   &point == &history_.front() ? "" : ", ", point.at_s, point.seconds, point.bytes_read,
                   point.bytes_written, point.operations);
  return out + "]";
}

}  // namespace penstock
