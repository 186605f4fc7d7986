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
#include "io_backends/core/json_text.hpp"
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

// What an exporter wrote, and the sentences for the user. The command prints them.
struct ExportOutcome {
  std::string file;
  std::string_view item_name;  // the counted things: "events"
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

// Opens all sessions as one and creates the output file. Calls `write`, which returns a count and may add
// sentences to the outcome. Then publishes the file. `object` names the file in errors; `item_name` is
// ExportOutcome::counted.
Result<ExportOutcome> export_to_file(
    const ExportRequest& request, std::string_view object, std::string_view item_name,
    const std::function<Result<uint64_t>(const Session&, const FileSums&, WholeFile&, ExportOutcome&)>&
        write);

// Adds a warning if single calls are missing in an export.
void warn_of_dropped(const Session& session, ExportOutcome& outcome);

}  // namespace penstock
