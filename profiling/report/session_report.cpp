#include "profiling/report/session_report.hpp"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

// The most files in one list of a report. Their sums are kept in memory, so the number must be limited.
constexpr size_t kMostListedFiles = 10'000;

// What one thread has added up for its part of the files.
struct ThreadResults {
  explicit ThreadResults(size_t most)
      : most_bytes(most, by_bytes), most_time(most, by_time), biggest(most, by_size) {}
  void add(const ThreadResults& more) {
    mounts.add(more.mounts);
    folders.add(more.folders);
    most_bytes.add(more.most_bytes);
    most_time.add(more.most_time);
    biggest.add(more.biggest);
  }
  RollUps mounts;
  RollUps folders;
  TopFiles most_bytes;
  TopFiles most_time;
  TopFiles biggest;
};

}  // namespace

SessionReport inspect_session(const Session& session, const FileSums& sums, const SessionFilter& filter,
                              std::string_view by, size_t most) {
  MountTable mounts = MountTable::of_this_machine();
  const bool rows_are_folders = by == "directory" || by == "all";
  std::vector<ThreadResults> results(summing_thread_count(), ThreadResults(std::min(most, kMostListedFiles)));
  SessionSummary summary = summarise(session, sums, filter, [&](size_t thread_index, const FileSum& file) {
    ThreadResults& result = results[thread_index];
    result.mounts.add(mounts.mount_of(file.path), file);
    if (rows_are_folders)
      result.folders.add(file.kind == PENSTOCK_DIRECTORY ? file.path : folder_of(file.path), file);
    result.most_bytes.add(file);
    result.most_time.add(file);
    result.biggest.add(file);
  });
  ThreadResults& all = results.front();
  for (size_t i = 1; i < results.size(); ++i) all.add(results[i]);
  SessionReport report{.mount_table = std::move(mounts),
                       .summary = std::move(summary),
                       .mounts = all.mounts.largest_rows(by == "mount" ? most : SIZE_MAX),
                       .rows = {},
                       .processes = {},
                       .most_bytes = std::move(all.most_bytes),
                       .most_time = std::move(all.most_time),
                       .biggest = std::move(all.biggest)};
  if (by == "mount") report.rows = report.mounts;
  if (rows_are_folders) report.rows = all.folders.largest_rows(most);
  const size_t row_count = rows_are_folders ? all.folders.size() : all.mounts.size();
  report.rows_not_shown = row_count - std::min(most, row_count);
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
