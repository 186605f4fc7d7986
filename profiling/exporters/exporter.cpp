#include "profiling/exporters/exporter.hpp"

#include <fmt/format.h>

#include "profiling/report/session_text.hpp"
#include "profiling/session/session_summary.hpp"

namespace penstock {

Result<ExportOutcome> export_to_file(
    const ExportRequest& request, std::string_view object, std::string_view item_name,
    const std::function<Result<uint64_t>(const Session&, const FileSums&, WholeFile&, ExportOutcome&)>&
        write) {
  ExportOutcome outcome{.file = std::string(request.output), .item_name = item_name};
  PENSTOCK_ASSIGN(const Session session, request.open(request.sessions));
  const FileSums sums(session);
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(outcome.file, object));
  PENSTOCK_ASSIGN(outcome.count, write(session, sums, file, outcome));
  if (outcome.count == 0) {
    bool any_operation = false;
    sums.each(request.filter.wanted(), [&](const FileSum& sum) { any_operation |= has_operations(sum); });
    if (!any_operation) return make_error(Errc::not_found, std::string(kNothingToExport));
  }
  PENSTOCK_TRY(file.publish());
  return outcome;
}

void warn_of_dropped(const Session& session, ExportOutcome& outcome) {
  if (const Drops drops = drops_of(session); drops.segments > 0)
    outcome.warnings.push_back(fmt::format("{} were dropped and are missing", dropped_calls_text(drops)));
}

}  // namespace penstock
