// The exporter `records`: result records that `penstock report` can draw.
#include <filesystem>
#include <utility>
#include <vector>

#include "profiling/exporters/exporter.hpp"
#include "profiling/exporters/session_records.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kDefaultOutput = "penstock-results";

Result<ExportOutcome> write_session_records(const ExportRequest& request) {
  const CommandContext& context = request.context;
  std::vector<NamedTier> tiers;
  for (const std::string& text : context.options.texts("tier")) {
    PENSTOCK_ASSIGN(NamedTier tier, parse_named_tier(text));
    tiers.push_back(std::move(tier));
  }
  const std::vector<std::string> argv(context.argv.begin(), context.argv.end());
  // Each session is a measurement of its own, so its records are made separately.
  std::vector<Record> records;
  for (const std::string& argument : request.sessions) {
    PENSTOCK_ASSIGN(const Session session, request.open(std::span(&argument, 1)));
    const FileSums sums(session);
    for (Record& record : records_of(session, sums, request.filter, tiers, argv)) {
      record.parameters["session"] = argument;
      records.push_back(std::move(record));
    }
  }
  if (records.empty()) return make_error(Errc::not_found, std::string(kNothingToExport));
  PENSTOCK_ASSIGN(const fs::path file,
                  write_records(request.output.empty() ? kDefaultOutput : request.output, records));
  ExportOutcome outcome{.file = file.string(), .item_name = "records", .count = records.size()};
  if (request.context.output.json)
    for (const Record& record : records) outcome.json.push_back(to_json(record));
  return outcome;
}

}  // namespace

extern const ExporterInfo exporter_records;
const ExporterInfo exporter_records{.name = "records",
                                    .summary = "result records for 'penstock report'",
                                    .output = "",
                                    .accepts_tiers = true,
                                    .write = &write_session_records};

}  // namespace penstock
