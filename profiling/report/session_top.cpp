#include "profiling/report/session_top.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session_coverage.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {
namespace {

double per_second(uint64_t count, double seconds) {
  return seconds > 0 ? double(count) / seconds : 0;
}

SessionProgress::FileProgress difference(SessionProgress::FileProgress current,
                                         const SessionProgress::FileProgress& previous) {
  const auto subtract = [](uint64_t& count, uint64_t part) { count -= std::min(count, part); };
  subtract(current.bytes_read, previous.bytes_read);
  subtract(current.bytes_written, previous.bytes_written);
  subtract(current.operations, previous.operations);
  return current;
}

// True if `a` comes before `b` in SessionProgress::files: sorted by key, and by path if the keys are equal.
bool is_before(const SessionProgress::FileProgress& a, const SessionProgress::FileProgress& b) {
  return a.file != b.file ? a.file < b.file : a.path < b.path;
}

bool is_busier(const SessionProgress::FileProgress& a, const SessionProgress::FileProgress& b) {
  const uint64_t a_bytes = a.bytes_read + a.bytes_written;
  const uint64_t b_bytes = b.bytes_read + b.bytes_written;
  if (a_bytes != b_bytes) return a_bytes > b_bytes;
  return a.operations != b.operations ? a.operations > b.operations : a.path < b.path;
}

}  // namespace

SessionProgress measure_progress(Session session, const SessionFilter& filter) {
  SessionProgress progress;
  progress.session = std::move(session);
  progress.time = std::chrono::steady_clock::now();
  const std::string host = this_host();
  int64_t begin_ns = INT64_MAX;
  int64_t end_ns = INT64_MIN;
  for (const SessionProcess& process : progress.session.processes) {
    if (writer_runs(process.last(), host)) ++progress.processes;
    begin_ns = std::min(begin_ns, process.first().header().begin_realtime_ns);
    end_ns = std::max(end_ns, process.last().view().clock().realtime_ns(process.last().end_monotonic_ns()));
  }
  if (progress.processes > 0)
    end_ns = std::chrono::duration_cast<std::chrono::nanoseconds>(
                 std::chrono::system_clock::now().time_since_epoch())
                 .count();
  progress.running_s = std::max(0.0, (double(end_ns) - double(begin_ns)) / 1e9);
  const FileSums sums(progress.session);
  sums.each(filter.wanted(), [&](const FileSum& file) {
    if (!has_operations(file)) return;
    progress.all.bytes_read += file.all.bytes_read;
    progress.all.bytes_written += file.all.bytes_written;
    progress.all.operations += file.all.operations();
    progress.files.push_back(
        {file.file, file.all.bytes_read, file.all.bytes_written, file.all.operations(), file.path});
  });
  std::sort(progress.files.begin(), progress.files.end(), is_before);
  return progress;
}

Change change_of(const SessionProgress* previous, const SessionProgress& current, size_t most) {
  Change change;
  change.seconds = previous == nullptr ? current.running_s
                                       : std::chrono::duration<double>(current.time - previous->time).count();
  change.all = previous == nullptr ? current.all : difference(current.all, previous->all);
  size_t i = 0;
  for (SessionProgress::FileProgress file : current.files) {
    while (previous != nullptr && i < previous->files.size() && is_before(previous->files[i], file)) ++i;
    if (previous != nullptr && i < previous->files.size() && !is_before(file, previous->files[i])) {
      file = difference(file, previous->files[i]);
    }
    if (file.operations == 0 && file.bytes_read + file.bytes_written == 0) continue;
    ++change.files;
    change.hottest.push_back(file);
    if (change.hottest.size() < 2 * most + 64) continue;
    std::nth_element(change.hottest.begin(), change.hottest.begin() + ptrdiff_t(most), change.hottest.end(),
                     is_busier);
    change.hottest.resize(most);
  }
  std::sort(change.hottest.begin(), change.hottest.end(), is_busier);
  if (change.hottest.size() > most) change.hottest.resize(most);
  return change;
}

std::string change_text(const SessionProgress& current, const Change& change, const Output& output) {
  const bool is_whole_run = change.seconds == current.running_s;  // there is no earlier moment
  const auto rate = [&](uint64_t bytes) {
    return bytes_per_s_text(per_second(bytes, change.seconds), output);
  };
  std::string text = fmt::format(
      "{} running for {}; {} read, {} written in {}\n{} {}: {} read, {} written, {} operations/s on "
      "{}\n\n",
      count_of(current.processes, "process", "processes"), format_seconds(current.running_s),
      format_bytes(double(current.all.bytes_read), output),
      format_bytes(double(current.all.bytes_written), output), count_of(current.files.size(), "file"),
      current.processes == 0 && is_whole_run ? "no process is running; in the" : "last",
      format_seconds(change.seconds), rate(change.all.bytes_read), rate(change.all.bytes_written),
      format_number(per_second(change.all.operations, change.seconds), output),
      count_of(change.files, "file"));
  Rows rows{{"file", "read", "written", "operations/s"}, {}, 0};
  for (const SessionProgress::FileProgress& file : change.hottest)
    rows.rows.push_back({printable_path(file.path), rate(file.bytes_read), rate(file.bytes_written),
                         format_number(per_second(file.operations, change.seconds), output)});
  return text + rows_text(rows);
}

Json change_json(const SessionProgress& current, const Change& change) {
  return Json{{"kind", "top"},
              {"processes", current.processes},
              {"running_s", current.running_s},
              {"seconds", change.seconds},
              {"files", current.files.size()},
              {"bytes_read", current.all.bytes_read},
              {"bytes_written", current.all.bytes_written},
              {"operations", current.all.operations},
              {"read_bytes_per_s", per_second(change.all.bytes_read, change.seconds)},
              {"written_bytes_per_s", per_second(change.all.bytes_written, change.seconds)},
              {"operations_per_s", per_second(change.all.operations, change.seconds)},
              {"active_files", change.files},
              {"hottest", hottest_json(change)}};
}

Json hottest_json(const Change& change) {
  Json files = Json::array();
  for (const SessionProgress::FileProgress& file : change.hottest)
    files.push_back({{"path", file.path},
                     {"bytes_read", file.bytes_read},
                     {"bytes_written", file.bytes_written},
                     {"operations", file.operations}});
  return files;
}

}  // namespace penstock
