#include "profiling/report/session_report.hpp"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kMostListed = 10'000;  // at most this number of files keep their sums in memory

// The results of one thread.
struct ThreadResults {
  explicit ThreadResults(std::size_t most)
      : bytes(most, by_bytes), time(most, by_time), size(most, by_size) {}
  void add(const ThreadResults& more) {
    mounts.add(more.mounts);
    folders.add(more.folders);
    bytes.add(more.bytes);
    time.add(more.time);
    size.add(more.size);
  }
  RollUps mounts;
  RollUps folders;
  TopFiles bytes;
  TopFiles time;
  TopFiles size;
};

}  // namespace

SessionReport inspect_session(const Session& session, const FileSums& sums, const SessionFilter& filter,
                              std::string_view by, std::size_t most) {
  MountTable mounts = MountTable::of_this_machine();
  const bool by_folder = by == "directory" || by == "all";
  std::vector<ThreadResults> parts(summing_threads(), ThreadResults(std::min(most, kMostListed)));
  SessionSummary summary = summarise(session, sums, filter, [&](std::size_t place, const FileSum& file) {
    ThreadResults& part = parts[place];
    part.mounts.add(mounts.mount_of(file.path), file);
    if (by_folder) part.folders.add(file.kind == PENSTOCK_DIRECTORY ? file.path : folder_of(file.path), file);
    part.bytes.add(file);
    part.time.add(file);
    part.size.add(file);
  });
  ThreadResults& all = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) all.add(parts[i]);
  SessionReport report{.mount_table = std::move(mounts),
                       .summary = std::move(summary),
                       .mounts = all.mounts.largest(by == "mount" ? most : SIZE_MAX),
                       .rows = {},
                       .processes = {},
                       .most_bytes = std::move(all.bytes),
                       .most_time = std::move(all.time),
                       .biggest = std::move(all.size)};
  if (by == "mount") report.rows = report.mounts;
  if (by_folder) report.rows = all.folders.largest(most);
  const std::size_t rows = by_folder ? all.folders.size() : all.mounts.size();
  report.rows_not_shown = rows - std::min(most, rows);
  if (by == "process" || by == "all") {
    report.processes = sum_by_process(session, sums, filter);
    std::stable_sort(report.processes.begin(), report.processes.end(),
                     [](const ProcessSum& a, const ProcessSum& b) {
                       if (a.all.bytes() != b.all.bytes()) return a.all.bytes() > b.all.bytes();
                       return a.all.io_ns() > b.all.io_ns();
                     });
  }
  return report;
}

}  // namespace penstock
