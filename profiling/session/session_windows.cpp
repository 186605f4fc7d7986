#include "profiling/session/session_windows.hpp"

#include <algorithm>
#include <map>
#include <set>

#include "profiling/session/layers.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {
namespace {

SessionWindow window_of(const ProcessFile& process_file) {
  SessionWindow window;
  window.process_file = &process_file;
  // Calculated in doubles, because times in a damaged file may be any numbers, and integers could overflow.
  window.wall_s =
      (double(process_file.end_monotonic_ns()) - double(process_file.header().begin.monotonic_ns)) / 1e9;
  process_file.view().each_event([&](const penstock_event& event, std::string_view text) {
    if (event.kind != PENSTOCK_EVENT_WINDOW) return;
    window.number = event.pid;
    window.label = text;
  });
  return window;
}

}  // namespace

std::vector<SessionWindow> windows_of(const Session& session, const SessionFilter& filter) {
  std::vector<SessionWindow> windows;
  std::map<const ProcessFile*, size_t> window_index;
  for (const auto& process_file : session.process_files) windows.push_back(window_of(*process_file));
  std::stable_sort(windows.begin(), windows.end(), [](const SessionWindow& a, const SessionWindow& b) {
    return a.process_file->header().begin_realtime_ns < b.process_file->header().begin_realtime_ns;
  });
  for (size_t i = 0; i < windows.size(); ++i) window_index.emplace(windows[i].process_file, i);
  std::vector<std::set<uint64_t>> files(windows.size());
  const FileSums sums(session);
  sums.each_entry([&](const penstock_counters& counters, const ProcessFile& process_file,
                      std::string_view path, unsigned kind) {
    const bool moved_bytes = counters.bytes_read + counters.bytes_written > 0;
    if (!moves_bytes_of_its_own(counters.layer) || !filter.wants(path, kind, moved_bytes, process_file))
      return;
    const size_t index = window_index.at(&process_file);
    windows[index].all.add(counters, process_file.view().clock());
    files[index].insert(counters.file);
  });
  for (size_t i = 0; i < windows.size(); ++i) windows[i].files = files[i].size();
  return windows;
}

}  // namespace penstock
