// penstock report RESULTS... -o report.html
#include <fmt/format.h>

#include <climits>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "io_backends/base/command.hpp"
#include "io_backends/base/progress.hpp"
#include "io_backends/base/whole_file.hpp"
#include "results/cells.hpp"
#include "results/report/page.hpp"
#include "results/store.hpp"
#include "results/verdicts.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr OptionSpec kOptions[] = {
    {.name = "output",
     .value = "FILE",
     .fallback = "report.html",
     .help = "the page to write; replaces what is there",
     .group = "Report",
     .alias = "o"},
    {.name = "title",
     .value = "TEXT",
     .fallback = "What each tier can feed",
     .help = "the page's heading",
     .group = "Report"},
};

std::string listed(const std::vector<fs::path>& paths) {
  std::string text;
  for (const fs::path& path : paths) text += (text.empty() ? "'" : ", '") + path.string() + "'";
  return text;
}

Result<int> run_report(const CommandContext& context) {
  std::vector<fs::path> paths(context.positionals.begin(), context.positionals.end());
  if (paths.empty()) paths.emplace_back("penstock-results");
  PENSTOCK_ASSIGN(RecordSet set, read_records(paths));
  std::vector<Record*> all;
  for (StoredRecord& stored : set.records) all.push_back(&stored.record);
  tell_tiers_apart(all);
  for (const std::string& problem : set.problems) warn(problem);
  if (set.records.empty())
    return make_error(
        Errc::not_found,
        fmt::format("no records in {}: read {} files named *.jsonl there; measuring commands write them "
                    "into --results DIR",
                    listed(paths), set.files.size()));
  const fs::path output = context.options.text("output");
  if (output.empty() || !output.has_filename())
    return make_error(Errc::invalid_argument, "--output names a file, not '" + output.string() + "'");
  PENSTOCK_ASSIGN(WholeFile page, WholeFile::create(output.string(), "the report"));
  PENSTOCK_TRY(page.write(report::render_page(set, context.output, context.options.text("title"))));
  PENSTOCK_TRY(page.publish());
  std::vector<Record> records;
  for (const StoredRecord& stored : set.records) records.push_back(stored.record);
  const std::vector<Sentence> said = sentences(records, context.output);
  std::string text;
  if (context.output.json) {
    Json line{{"report", output.string()}, {"records", set.records.size()}, {"problems", set.problems}};
    line["sentences"] = Json::array();
    for (const Sentence& sentence : said) line["sentences"].push_back(sentence.text);
    text = line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  } else {
    for (const Sentence& sentence : said) text += sentence.text + "\n";
    text += fmt::format("{}: {} records\n", output.string(), set.records.size());
  }
  std::fwrite(text.data(), 1, text.size(), stdout);
  return 0;
}

}  // namespace

extern const CommandInfo command_report;
const CommandInfo command_report{
    .name = "report",
    .summary = "one self-contained page: what each tier can feed, in charts, tables and words",
    .options = kOptions,
    .run = run_report,
    .synopsis = "penstock report [RESULTS]... [-o report.html]",
    .examples = {"penstock report -o report.html                # every record in penstock-results/",
                 "penstock report monday/ tuesday/run.jsonl -o both.html   # several folders and files"},
    .nouns = "RESULTS",
    .nouns_at_least = 0,
    .nouns_at_most = INT_MAX,
};

}  // namespace penstock
