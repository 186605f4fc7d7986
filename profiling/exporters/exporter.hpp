// An exporter of `penstock profile export` writes a session for another tool. A new exporter is one source
// file and one line in CMake.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/result.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "profiling/session/file_sums.hpp"
#include "profiling/session/session.hpp"
#include "profiling/session/session_filter.hpp"

namespace penstock {

struct ExportRequest {
  const CommandContext& context;
  std::string_view output;  // --output; "" if the exporter chooses the file itself
  std::span<const std::string> sessions;
  const SessionFilter& filter;
  Result<Session> (*open)(std::span<const std::string> sessions);  // opens one or several sessions as one
};

struct ExporterInfo {
  std::string_view name;
  std::string_view summary;                                      // "a trace for Chrome and Perfetto"
  std::string_view output = "-o FILE";                           // "" if the exporter chooses the file itself
  bool takes_tiers = false;                                      // accepts --tier NAME=PATH
  Result<int> (*write)(const ExportRequest& request) = nullptr;  // returns the exit code
};

const Registry<ExporterInfo>& exporter_registry();

// Opens all sessions as one and creates the output file. Calls `write`, which returns a count. Then publishes
// the file and reports the count; `what` names the counted things ("events"). `object` names the file in
// messages.
Result<int> export_to_file(
    const ExportRequest& request, std::string_view object, std::string_view what,
    const std::function<Result<std::uint64_t>(const Session&, const FileSums&, WholeFile&)>& write);
// Reports what an exporter wrote: as a line on stderr, or with --json as an object on stdout.
void report_export(const CommandContext& context, std::string_view file, std::string_view what,
                   std::uint64_t count);
// Warns if single calls are missing in an export.
void report_dropped(const Session& session);

}  // namespace penstock
