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

double per_second(std::uint64_t count, double seconds) {
  return seconds > 0 ? static_cast<double>(count) / seconds : 0;
}

Look::Point grown(Look::Point now, const Look::Point& before) {
  const auto more = [](std::uint64_t& count, std::uint64_t then) { count -= std::min(count, then); };
  more(now.bytes_read, before.bytes_read);
  more(now.bytes_written, before.bytes_written);
  more(now.operations, before.operations);
  return now;
}

bool hotter(const Look::Point& a, const Look::Point& b) {
  const std::uint64_t a_bytes = a.bytes_read + a.bytes_written;
  const std::uint64_t b_bytes = b.bytes_read + b.bytes_written;
  if (a_bytes != b_bytes) return a_bytes > b_bytes;
  return a.operations != b.operations ? a.operations > b.operations : a.path < b.path;
}

}  // namespace

Look inspect(Session session, const SessionFilter& filter) {
  Look look;
  look.session = std::move(session);
  look.when = std::chrono::steady_clock::now();
  const std::string host = this_host();
  std::int64_t begin = INT64_MAX;
  std::int64_t end = INT64_MIN;
  for (const SessionProcess& process : look.session.processes) {
    if (lives(process.last(), host)) ++look.processes;
    begin = std::min(begin, process.first().header().begin_realtime_ns);
    end = std::max(end, process.last().view().clock().realtime_ns(process.last().end_monotonic_ns()));
  }
  if (look.processes > 0)
    end = std::chrono::duration_cast<std::chrono::nanoseconds>(
              std::chrono::system_clock::now().time_since_epoch())
              .count();
  look.running_s = std::max(0.0, (static_cast<double>(end) - static_cast<double>(begin)) / 1e9);
  const FileSums sums(look.session);
  sums.each(filter.wanted(), [&](const FileSum& file) {
    if (!was_touched(file)) return;
    look.all.bytes_read += file.all.bytes_read;
    look.all.bytes_written += file.all.bytes_written;
    look.all.operations += file.all.operations();
    look.points.push_back(
        {file.file, file.all.bytes_read, file.all.bytes_written, file.all.operations(), file.path});
  });
  // Two files whose names have the same key: only the first is kept here. `all` includes both.
  const auto same = [](const Look::Point& a, const Look::Point& b) { return a.file == b.file; };
  std::stable_sort(look.points.begin(), look.points.end(),
                   [](const Look::Point& a, const Look::Point& b) { return a.file < b.file; });
  look.points.erase(std::unique(look.points.begin(), look.points.end(), same), look.points.end());
  return look;
}

Change change_of(const Look* before, const Look& now, std::size_t most) {
  Change change;
  change.seconds =
      before == nullptr ? now.running_s : std::chrono::duration<double>(now.when - before->when).count();
  change.all = before == nullptr ? now.all : grown(now.all, before->all);
  std::size_t at = 0;
  for (Look::Point point : now.points) {
    while (before != nullptr && at < before->points.size() && before->points[at].file < point.file) ++at;
    if (before != nullptr && at < before->points.size() && before->points[at].file == point.file) {
      point = grown(point, before->points[at]);
    }
    if (point.operations == 0 && point.bytes_read + point.bytes_written == 0) continue;
    ++change.files;
    change.hottest.push_back(point);
    if (change.hottest.size() < 2 * most + 64) continue;
    std::nth_element(change.hottest.begin(), change.hottest.begin() + static_cast<std::ptrdiff_t>(most),
                     change.hottest.end(), hotter);
    change.hottest.resize(most);
  }
  std::sort(change.hottest.begin(), change.hottest.end(), hotter);
  if (change.hottest.size() > most) change.hottest.resize(most);
  return change;
}

std::string change_text(const Look& now, const Change& change, const Output& output) {
  const auto rate = [&](std::uint64_t bytes) {
    return bytes_per_s_text(per_second(bytes, change.seconds), output);
  };
  std::string text = fmt::format(
      "{} running for {}; {} read, {} written in {}\nlast {}: {} read, {} written, {} operations/s on "
      "{}\n\n",
      count_of(now.processes, "process", "processes"), format_seconds(now.running_s),
      format_bytes(static_cast<double>(now.all.bytes_read), output),
      format_bytes(static_cast<double>(now.all.bytes_written), output), count_of(now.points.size(), "file"),
      format_seconds(change.seconds), rate(change.all.bytes_read), rate(change.all.bytes_written),
      format_number(per_second(change.all.operations, change.seconds)), count_of(change.files, "file"));
  Rows rows{{"file", "read", "written", "operations/s"}, {}, 0};
  for (const Look::Point& point : change.hottest)
    rows.rows.push_back({printable_path(point.path), rate(point.bytes_read), rate(point.bytes_written),
                         format_number(per_second(point.operations, change.seconds))});
  return text + rows_text(rows);
}

Json change_json(const Look& now, const Change& change) {
  return Json{{"kind", "top"},
              {"processes", now.processes},
              {"running_s", now.running_s},
              {"seconds", change.seconds},
              {"files", now.points.size()},
              {"bytes_read", now.all.bytes_read},
              {"bytes_written", now.all.bytes_written},
              {"operations", now.all.operations},
              {"read_bytes_per_s", per_second(change.all.bytes_read, change.seconds)},
              {"written_bytes_per_s", per_second(change.all.bytes_written, change.seconds)},
              {"operations_per_s", per_second(change.all.operations, change.seconds)},
              {"active_files", change.files},
              {"hottest", hottest_json(change)}};
}

Json hottest_json(const Change& change) {
  Json files = Json::array();
  for (const Look::Point& point : change.hottest)
    files.push_back({{"path", point.path},
                     {"bytes_read", point.bytes_read},
                     {"bytes_written", point.bytes_written},
                     {"operations", point.operations}});
  return files;
}

}  // namespace penstock
