// An exporter of `penstock profile export` writes a session for another tool. A new exporter is one source
// file and one line in CMake.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/json.hpp"
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
  // opens the given sessions as one Session
  Result<Session> (*open)(std::span<const std::string> sessions);
};

// Describes what an exporter wrote. The command prints this description.
struct ExportOutcome {
  std::string file;
  std::string_view item_name;  // what `count` counts, such as "events"
  uint64_t count = 0;
  std::vector<std::string> notes{};
  std::vector<std::string> warnings{};
  std::vector<Json> json{};  // printed with --json; if empty, the file and the count are printed
};

struct ExporterInfo {
  std::string_view name;
  std::string_view summary;             // "a trace for Chrome and Perfetto"
  std::string_view output = "-o FILE";  // "" if the exporter chooses the file itself
  bool accepts_tiers = false;           // accepts --tier NAME=PATH
  Result<ExportOutcome> (*write)(const ExportRequest& request) = nullptr;
};
const Registry<ExporterInfo>& exporter_registry();

inline constexpr std::string_view kNothingToExport =
    "no file that --include and --exclude select was read or written: there is nothing to export";

// Exports all given sessions together to one file, in three steps.
// 1. Opens the sessions as one Session and creates the output file under a temporary name.
// 2. Calls `write`, which writes the file and returns how many items it wrote. It may also add notes and
// warnings to the outcome.
// 3. Gives the file its final name. If the session has no operation on a wanted file, no file appears, and
// the error is not_found. `object` names the file in errors; `item_name` becomes ExportOutcome::item_name.
Result<ExportOutcome> export_to_file(
    const ExportRequest& request, std::string_view object, std::string_view item_name,
    const std::function<Result<uint64_t>(const Session&, const FileSums&, WholeFile&, ExportOutcome&)>&
        write);

// Adds a warning to the outcome if single calls are missing because the profiler dropped them.
void warn_of_dropped(const Session& session, ExportOutcome& outcome);

}  // namespace penstock
