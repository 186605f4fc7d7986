// An exporter of `penstock profile export`: a session in the form of another tool. A plug-in is one file and
// one CMake line.
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
  std::string_view output;  // --output; "" where the exporter has a place of its own
  std::span<const std::string> sessions;
  const SessionFilter& filter;
  Result<Session> (*open)(std::span<const std::string> sessions);  // some of them, as one
};

struct ExporterInfo {
  std::string_view name;
  std::string_view summary;             // "a trace for Chrome and Perfetto"
  std::string_view output = "-o FILE";  // what it needs; "" where it has a place of its own
  bool takes_tiers = false;             // --tier NAME=PATH
  Result<int> (*write)(const ExportRequest& request) = nullptr;  // returns the exit code
};

const Registry<ExporterInfo>& exporter_registry();

// Opens all sessions together, has them written to one file, which is published, and reports the number of
// `what` that it returns. `object`: the file in messages.
Result<int> export_to_file(
    const ExportRequest& request, std::string_view object, std::string_view what,
    const std::function<Result<std::uint64_t>(const Session&, const FileSums&, WholeFile&)>& write);
// What an exporter of all sessions together wrote: a line on stderr, or with --json an object on stdout.
void report_export(const CommandContext& context, std::string_view file, std::string_view what,
                   std::uint64_t count);
// Warns of what an export of single calls lacks.
void report_dropped(const Session& session);

}  // namespace penstock
