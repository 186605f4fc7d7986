// penstock profile export --to FORMAT SESSION... -o FILE
#include <fmt/format.h>

#include <cstdio>
#include <string>
#include <vector>

#include "io_backends/base/progress.hpp"
#include "io_backends/base/units.hpp"
#include "profiling/profile_verbs.hpp"
#include "profiling/session_export.hpp"
#include "profiling/session_records.hpp"
#include "results/store.hpp"

namespace penstock {
namespace {

constexpr std::string_view kResults = "penstock-results";

void say(const CommandContext& context, const std::string& file, std::string_view what, std::uint64_t count) {
  if (context.output.json) {
    const Json line{{"file", file}, {std::string(what), count}};
    const std::string text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
    std::fwrite(text.data(), 1, text.size(), stdout);
  } else {
    note(fmt::format("{}: {} {}", file, format_count(count), what));
  }
}

Result<int> to_records(const CommandContext& context, ProfileNouns nouns, const SessionFilter& filter) {
  std::vector<NamedTier> tiers;
  for (const std::string& text : context.options.texts("tier")) {
    PENSTOCK_ASSIGN(NamedTier tier, parse_named_tier(text));
    tiers.push_back(std::move(tier));
  }
  const std::vector<std::string> argv(context.argv.begin(), context.argv.end());
  // Each session is a measurement of its own.
  std::vector<Record> records;
  for (const std::string& noun : nouns) {
    PENSTOCK_ASSIGN(const Session session, open_named_sessions(std::span(&noun, 1)));
    const FileSums sums(session);
    for (Record& record : records_of(session, sums, filter, tiers, argv)) {
      record.parameters["session"] = noun;
      records.push_back(std::move(record));
    }
  }
  if (records.empty())
    return make_error(Errc::not_found,
                      "no file that is wanted was read or written: there is nothing to record");
  const std::string& output = context.options.text("output");
  PENSTOCK_ASSIGN(const std::filesystem::path file,
                  write_records(output.empty() ? std::string(kResults) : output, records));
  if (!context.output.json) {
    say(context, file.string(), "records", records.size());
    return 0;
  }
  for (const Record& record : records) {
    const std::string line = record_line(record) + "\n";
    std::fwrite(line.data(), 1, line.size(), stdout);
  }
  return 0;
}

}  // namespace

Result<int> profile_export(const CommandContext& context, ProfileNouns nouns) {
  const std::string& to = context.options.text("to");
  const std::string& output = context.options.text("output");
  if (to.empty())
    return make_error(Errc::invalid_argument, "'export' needs a format: --to chrome, csv or records");
  if (!context.options.texts("tier").empty() && to != "records")
    return make_error(Errc::invalid_argument, "--tier is for --to records");
  const SessionFilter filter = filter_of(context.options, nouns);
  if (nouns.empty()) return open_named_sessions(nouns).error();
  if (to == "records") return to_records(context, nouns, filter);
  if (output.empty()) return make_error(Errc::invalid_argument, "'export' needs a file to write: -o FILE");
  PENSTOCK_ASSIGN(const Session session, open_named_sessions(nouns));
  const FileSums sums(session);
  PENSTOCK_ASSIGN(WholeFile file, WholeFile::create(output, "the export"));
  if (to == "csv") {
    PENSTOCK_TRY(export_csv(sums, filter, file));
    PENSTOCK_TRY(file.publish());
    say(context, output, "entries", sums.entries());
    return 0;
  }
  PENSTOCK_ASSIGN(const ChromeCounts counts, export_chrome(session, sums, filter, file));
  PENSTOCK_TRY(file.publish());
  if (counts.calls + counts.spans == 0)
    warn("the session kept no single calls: 'penstock profile run --trace' keeps them");
  say(context, output, "events", 2 * counts.calls + counts.spans);
  return 0;
}

}  // namespace penstock
