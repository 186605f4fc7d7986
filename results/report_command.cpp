// penstock report RESULTS... -o report.html
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <cstdio>
#include <filesystem>
#include <string>
#include <vector>

#include "io_backends/base/command.hpp"
#include "io_backends/base/interrupt.hpp"
#include "io_backends/base/progress.hpp"
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

// The whole page under its name, or nothing new there.
Result<void> write_page(const fs::path& path, const std::string& page) {
  const fs::path folder = path.has_parent_path() ? path.parent_path() : fs::path(".");
  std::error_code none;
  if (!fs::is_directory(folder, none))
    return make_error(Errc::invalid_argument, "cannot write the report '" + path.string() +
                                                  "': there is no folder '" + folder.string() + "'");
  const fs::path temporary = folder / fmt::format(".{}.{}.tmp", path.filename().string(), random_id(8));
  const int fd = ::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (fd < 0) return errno_error(errno, "cannot write the report", path.string());
  std::FILE* file = ::fdopen(fd, "w");
  if (file == nullptr) {
    ::close(fd);
    ::unlink(temporary.c_str());
    return make_error(Errc::exhausted, "cannot write the report '" + path.string() + "': no memory");
  }
  const bool wrote = std::fwrite(page.data(), 1, page.size(), file) == page.size();
  int failure = wrote ? 0 : errno;
  if (std::fclose(file) != 0 && failure == 0) failure = errno;
  if (failure == 0 && !interrupted() && ::rename(temporary.c_str(), path.c_str()) == 0) return success();
  if (failure == 0) failure = errno;
  ::unlink(temporary.c_str());
  PENSTOCK_TRY(check_interrupt());
  return errno_error(failure, "cannot write the report", path.string());
}

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
  PENSTOCK_TRY(write_page(output, report::render_page(set, context.output, context.options.text("title"))));
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
