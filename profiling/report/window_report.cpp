#include "profiling/report/window_report.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/json.hpp"
#include "io_backends/core/units.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

std::string_view start_reason(uint32_t reason) {
  switch (reason) {
    case PENSTOCK_START_REASON_ATTACHED:
      return "attached";
    case PENSTOCK_START_REASON_CALLED:
      return "window";
    case PENSTOCK_START_REASON_BETWEEN:
      return "between";
    default:
      return "process";
  }
}

std::string window_name(const SessionWindow& window) {
  const std::string_view reason = start_reason(window.process_file->header().begun);
  if (window.number == 0) return std::string(reason);
  if (window.label.empty()) return fmt::format("{} {}", reason, window.number);
  return fmt::format("{} {}: {}", reason, window.number, printable_path(window.label));
}

}  // namespace

Rows window_rows(const std::vector<SessionWindow>& windows, size_t most, const Output& output) {
  Rows rows{{"window", "pid", "seconds", "files", "opens", "reads", "read", "read rate", "writes", "written"},
            {},
            windows.size() - std::min(most, windows.size())};
  for (const SessionWindow& window : windows) {
    if (rows.rows.size() == most) break;
    rows.rows.push_back({window_name(window), fmt::format("{}", window.process_file->header().pid),
                         fmt::format("{:.3f}", window.wall_s), format_count(window.files, output),
                         format_count(window.all.opens, output), format_count(window.all.reads, output),
                         format_bytes(double(window.all.bytes_read), output),
                         bytes_per_s_text(window.read_bytes_per_s(), output),
                         format_count(window.all.writes, output),
                         format_bytes(double(window.all.bytes_written), output)});
  }
  return rows;
}

void append_window_json(std::string& out, const SessionWindow& window) {
  const penstock_session_header& header = window.process_file->header();
  const Json line{{"kind", "window"},
                  {"number", window.number},
                  {"label", std::string(window.label)},
                  {"begun", start_reason(header.begun)},
                  {"pid", header.pid},
                  {"file", window.process_file->path().string()},
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
  out += one_line(line) + "\n";
}

}  // namespace penstock
