#include "profiling/report/session_report.hpp"

#include <algorithm>
#include <utility>

namespace penstock {
namespace {

constexpr std::size_t kMostListed = 10'000;  // files whose sums are kept

// What one thread gathers.
struct Gathered {
  explicit Gathered(std::size_t most) : bytes(most, by_bytes), time(most, by_time), size(most, by_size) {}
  RollUps mounts;
  RollUps folders;
  TopFiles bytes;
  TopFiles time;
  TopFiles size;
};

}  // namespace

SessionReport inspect_session(const Session& session, const FileSums& sums, const SessionFilter& filter,
                              std::string_view by, std::size_t most) {
  SessionReport report{.mount_table = MountTable::of_this_machine(),
                       .summary = {},
                       .mounts = {},
                       .rows = {},
                       .processes = {},
                       .most_bytes = {},
                       .most_time = {},
                       .biggest = {},
                       .not_shown = {}};
  const bool by_folder = by == "directory" || by == "all";
  std::vector<Gathered> parts(summing_threads(), Gathered(std::min(most, kMostListed)));
  report.summary = summarise(session, sums, filter, [&](std::size_t place, const FileSum& file) {
    Gathered& part = parts[place];
    part.mounts.add(report.mount_table.mount_of(file.path), file);
    if (by_folder) part.folders.add(file.kind == PENSTOCK_DIRECTORY ? file.path : folder_of(file.path), file);
    part.bytes.add(file);
    part.time.add(file);
    part.size.add(file);
  });
  Gathered& all = parts.front();
  for (std::size_t i = 1; i < parts.size(); ++i) {
    all.mounts.add(parts[i].mounts);
    all.folders.add(parts[i].folders);
    all.bytes.add(parts[i].bytes);
    all.time.add(parts[i].time);
    all.size.add(parts[i].size);
  }
  report.mounts = all.mounts.largest(by == "mount" ? most : SIZE_MAX);
  if (by == "mount") report.rows = report.mounts;
  if (by_folder) report.rows = all.folders.largest(most);
  report.not_shown.rows = (by_folder ? all.folders.size() : all.mounts.size()) -
                          std::min(most, by_folder ? all.folders.size() : all.mounts.size());
  if (by == "process" || by == "all") {
    report.processes = sum_by_process(session, sums, filter);
    std::stable_sort(
        report.processes.begin(), report.processes.end(), [](const ProcessSum& a, const ProcessSum& b) {
          const auto bytes = [](const LayerSum& sum) { return sum.bytes_read + sum.bytes_written; };
          if (bytes(a.all) != bytes(b.all)) return bytes(a.all) > bytes(b.all);
          return a.all.io_ns() > b.all.io_ns();
        });
  }
  report.most_bytes = all.bytes.ranked();
  report.most_time = all.time.ranked();
  report.biggest = all.size.ranked();
  report.not_shown.most_bytes = all.bytes.skipped();
  report.not_shown.most_time = all.time.skipped();
  report.not_shown.biggest = all.size.skipped();
  return report;
}

}  // namespace penstock
