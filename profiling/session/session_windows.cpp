#include "profiling/session/session_windows.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "io_backends/base/units.hpp"
#include "profiling/session/session_summary.hpp"
#include "results/table.hpp"

namespace penstock {
namespace {

std::string_view begun_name(std::uint32_t begun) {
  switch (begun) {
    case PENSTOCK_BEGUN_ATTACHED:
      return "attached";
    case PENSTOCK_BEGUN_CALLED:
      return "window";
    case PENSTOCK_BEGUN_BETWEEN:
      return "between";
    default:
      return "process";
  }
}

SessionWindow window_of(const SessionImage& image) {
  SessionWindow window;
  window.image = &image;
  // As numbers that do not overflow: what stands in a file may be any.
  window.wall_s = (static_cast<double>(image.end_monotonic_ns()) -
                   static_cast<double>(image.header().begin.monotonic_ns)) /
                  1e9;
  image.view().each_event([&](const penstock_event& event, std::string_view text) {
    if (event.kind != PENSTOCK_EVENT_WINDOW) return;
    window.number = event.pid;
    window.label = text;
  });
  return window;
}

std::string window_name(const SessionWindow& window) {
  const std::string_view begun = begun_name(window.image->header().begun);
  if (window.number == 0) return std::string(begun);
  if (window.label.empty()) return fmt::format("{} {}", begun, window.number);
  return fmt::format("{} {}: {}", begun, window.number, printable_path(window.label));
}

}  // namespace

std::vector<SessionWindow> windows_of(const Session& session, const SessionFilter& filter) {
  std::vector<SessionWindow> windows;
  std::map<const SessionImage*, std::size_t> places;
  for (const auto& image : session.images) windows.push_back(window_of(*image));
  std::stable_sort(windows.begin(), windows.end(), [](const SessionWindow& a, const SessionWindow& b) {
    return a.image->header().begin_realtime_ns < b.image->header().begin_realtime_ns;
  });
  for (std::size_t i = 0; i < windows.size(); ++i) places.emplace(windows[i].image, i);
  std::vector<std::set<std::uint64_t>> files(windows.size());
  const FileSums sums(session);
  sums.each_entry([&](const penstock_counters& counters, const SessionImage& image, std::string_view path,
                      unsigned kind) {
    const bool moved = counters.bytes_read + counters.bytes_written > 0;
    // Layers above others count the same bytes once more.
    if (counters.layer > PENSTOCK_RING || !filter.wants(path, kind, moved, image)) return;
    const std::size_t at = places.at(&image);
    windows[at].all.add(counters, image.view().clock());
    files[at].insert(counters.file);
  });
  for (std::size_t i = 0; i < windows.size(); ++i) windows[i].files = files[i].size();
  return windows;
}

Rows window_rows(const std::vector<SessionWindow>& windows, std::size_t most, const Output& output) {
  Rows rows{{"window", "pid", "seconds", "files", "opens", "reads", "read", "read rate", "writes", "written"},
            {},
            windows.size() - std::min(most, windows.size())};
  for (const SessionWindow& window : windows) {
    if (rows.rows.size() == most) break;
    rows.rows.push_back({window_name(window), fmt::format("{}", window.image->header().pid),
                         fmt::format("{:.3f}", window.wall_s), format_count(window.files),
                         format_count(window.all.opens), format_count(window.all.reads),
                         format_bytes(static_cast<double>(window.all.bytes_read), output),
                         rate_words(window.read_bytes_per_s(), output), format_count(window.all.writes),
                         format_bytes(static_cast<double>(window.all.bytes_written), output)});
  }
  return rows;
}

void append_window_json(std::string& out, const SessionWindow& window) {
  using Json = nlohmann::ordered_json;
  const penstock_session_header& header = window.image->header();
  const Json line{{"kind", "window"},
                  {"number", window.number},
                  {"label", std::string(window.label)},
                  {"begun", begun_name(header.begun)},
                  {"pid", header.pid},
                  {"file", window.image->path().string()},
                  {"begin_ns", header.begin_realtime_ns},
                  {"wall_s", window.wall_s},
                  {"files", window.files},
                  {"bytes_read", window.all.bytes_read},
                  {"bytes_written", window.all.bytes_written},
                  {"reads", window.all.reads},
                  {"writes", window.all.writes},
                  {"metadata_ops", window.all.metadata()},
                  {"read_bytes_per_s", window.read_bytes_per_s()},
                  {"read_time_s", window.all.read_ns / 1e9},
                  {"write_time_s", window.all.write_ns / 1e9},
                  {"meta_time_s", window.all.meta_ns / 1e9}};
  out += line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace penstock
