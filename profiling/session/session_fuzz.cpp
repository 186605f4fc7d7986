// Fuzz target: the input is one file of a session. It is read, added up, reported and exported. The number of
// files in the report must equal the number in the summary of the session.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/system/whole_file.hpp"
#include "profiling/exporters/session_export.hpp"
#include "profiling/report/session_json.hpp"
#include "profiling/report/session_report.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/report/window_report.hpp"
#include "profiling/session/session.hpp"

namespace penstock {
namespace {

void report(const Session& session, const SessionFilter& filter) {
  const FileSums sums(session);
  const SessionReport all = inspect_session(session, sums, filter, "all", 5);
  std::string text;
  append_session_json(text, session, all.summary);
  uint64_t files = 0;
  sums.each([&](std::string_view path, unsigned kind, bool moved,
                const ProcessFile& process_file) { return filter.wants(path, kind, moved, process_file); },
            [&](const FileSum& file) {
              if (!has_operations(file)) return;
              append_file_json(text, file);
              ++files;
            });
  if (files != all.summary.included.files + all.summary.included.directories) std::abort();
  for (const ProcessSum& process : all.processes) append_process_json(text, process);
  const std::vector<SessionWindow> windows = windows_of(session, filter);
  for (const SessionWindow& window : windows) append_window_json(text, window);
  text += rows_text(window_rows(windows, 5, {}));
  text += facts_text(session_facts(session, all.summary, filter, {}));
  text += rows_text(file_rows(all.most_bytes, {})) + rows_text(roll_up_rows("mount", all.mounts, {}));
  text += rows_text(process_rows(all.processes, 5, {})) + rows_text(size_rows(all.summary));
  Result<WholeFile> nowhere = WholeFile::create("/dev/null", "the export");
  if (!nowhere.ok() || !export_csv(sums, filter, *nowhere).ok() ||
      !export_chrome(session, sums, filter, *nowhere).ok() ||
      !export_darshan(session, sums, filter, *nowhere).ok() ||
      !export_tensorboard(session, sums, filter, *nowhere, &*nowhere).ok())
    std::abort();
}

}  // namespace
}  // namespace penstock

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  auto process_file = penstock::ProcessFile::from_bytes(std::as_bytes(std::span(data, size)));
  if (!process_file.ok()) return 0;
  std::vector<std::unique_ptr<penstock::ProcessFile>> process_files;
  process_files.push_back(*std::move(process_file));
  const penstock::Session session = penstock::session_of(std::move(process_files));
  penstock::report(session, {});
  penstock::report(session, {.include = {"*a*"}, .exclude = {"/x/*"}, .all_files = true});
  return 0;
}
