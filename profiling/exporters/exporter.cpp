#include "profiling/exporters/exporter.hpp"

#include <fmt/format.h>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/units.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/session/session_summary.hpp"
#include "results/record/json_members.hpp"

namespace penstock {

Result<int> export_to_file(
    const ExportRequest& request, std::string_view object, std::string_view what,
    const std::function<Result<std::uint64_t>(const Session&, const FileSums&, WholeFile&)>& write) {
  const std::string output(request.output);
  PENSTOCK_ASSIGN(const Session session, request.open(request.sessions));
  const FileSums sums(session);
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(output, object));
  PENSTOCK_ASSIGN(const std::uint64_t count, write(session, sums, file));
  PENSTOCK_TRY(file.publish());
  report_export(request.context, output, what, count);
  return 0;
}

void report_export(const CommandContext& context, std::string_view file, std::string_view what,
                   std::uint64_t count) {
  if (context.output.json) {
    print_json({{"file", file}, {std::string(what), count}});
  } else {
    note(fmt::format("{}: {} {}", file, format_count(count), what));
  }
}

void report_dropped(const Session& session) {
  if (const Drops drops = drops_of(session); drops.segments > 0)
    warn(fmt::format("{} are missing: they were dropped", dropped_calls_text(drops)));
}

}  // namespace penstock
