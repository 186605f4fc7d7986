// penstock report RESULTS... -o report.html
#include <fmt/format.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <filesystem>
#include <map>
#include <set>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/system/whole_file.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"
#include "results/compare/comparison.hpp"
#include "results/compare/gate_text.hpp"
#include "results/compare/matched_cells.hpp"
#include "results/compare/pooled_rounds.hpp"
#include "results/export/export_ci.hpp"
#include "results/export/export_csv.hpp"
#include "results/export/export_google.hpp"
#include "results/export/open_metrics.hpp"
#include "results/record/json_members.hpp"
#include "results/record/store.hpp"
#include "results/report/page.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr OptionSpec kReportOptions[] = {
    {.name = "output",
     .role = OptionRole::output,
     .value = "FILE|DIR",
     .help =
         "the file or, for csv and gha, the folder to write; replaces existing files (default: report.html, "
         "report-csv, report-gha, bmf.json, google-benchmark.json, openmetrics.txt)",
     .group = "Report",
     .alias = "o"},
    {.name = "to",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = "html|csv|bmf|gha|openmetrics|google-benchmark|parquet",
     .fallback = "html",
     .help = "a page; tables for pandas, R or a spreadsheet; the input of Bencher, github-action-benchmark, "
             "Prometheus, or Google Benchmark's compare.py",
     .group = "Report"},
    {.name = "baseline",
     .role = OptionRole::target,
     .value = "RESULTS",
     .help = "records to compare with: a section shows what changed since then",
     .group = "Report",
     .repeated = true},
    {.name = "title",
     .role = OptionRole::output,
     .value = "TEXT",
     .help = "the page's heading (default: what was measured, and on which tiers)",
     .group = "Report"},
};

// Lists the folders below `paths` that have record files. If `paths` themselves have no record files, the
// error message lists these folders: a sweep stores the records of each arm in a deeper folder.
std::string folders_with_records(const std::vector<fs::path>& paths) {
  std::set<std::string> folders;
  for (const fs::path& path : paths)
    for (const fs::path& folder : with_folders(path)) {
      std::error_code code;
      for (fs::directory_iterator at(folder, code), end; folder != path && !code && at != end;
           at.increment(code))
        if (at->path().extension() == ".jsonl") folders.insert(folder.string());
    }
  return fmt::format("{}", fmt::join(folders, ", "));
}

Result<RecordSet> records_in(const std::vector<fs::path>& paths) {
  PENSTOCK_ASSIGN(RecordSet set, read_records(paths));
  for (const std::string& problem : set.problems) warn(problem);
  for (const std::string& remark : set.remarks) note(remark);
  if (!set.records.empty()) return set;
  std::vector<std::string> names;
  for (const fs::path& path : paths) names.push_back(fmt::format("'{}'", path.string()));
  const std::string paths_text = fmt::format("{}", fmt::join(names, ", "));
  const std::string deeper_folders = folders_with_records(paths);
  if (!deeper_folders.empty())
    return make_error(Errc::not_found,
                      "no records in {}, but in folders below, which are not searched; name them: {}",
                      paths_text, deeper_folders);
  return make_error(Errc::not_found,
                    "no records in {}: read {} there; measuring commands write them into "
                    "--results DIR as *.jsonl",
                    paths_text, count_of(set.files.size(), "file"));
}

std::string names_of(const std::vector<fs::path>& paths) {
  std::vector<std::string> names;
  for (const fs::path& path : paths)
    names.push_back((path.has_filename() ? path : path.parent_path()).filename().string());
  return fmt::format("{}", fmt::join(names, ", "));
}

// The records of one interleaved sweep (its name in the records is the suite), as a list of arm and records.
// The arm "base" comes first, the others in order of appearance.
using Arms = std::vector<std::pair<std::string, RecordSet>>;

std::map<std::string, Arms> arms_of(const RecordSet& set) {
  std::map<std::string, Arms> suites;
  for (const StoredRecord& stored : set.records) {
    const RecordView* const view = find_view(stored.record.command);
    const std::string suite = suite_of(stored.record);
    const std::string name = arm_of(stored.record);
    if (suite.empty() || name.empty() || (view != nullptr && view->compares_arms)) continue;
    Arms& arms = suites[suite];
    auto at = std::find_if(arms.begin(), arms.end(), [&](const auto& one) { return one.first == name; });
    if (at == arms.end()) at = arms.emplace(name == "base" ? arms.begin() : arms.end(), name, RecordSet{});
    at->second.records.push_back(stored);
  }
  return suites;
}

std::vector<report::NamedComparison> compare_arms(const RecordSet& set) {
  std::vector<report::NamedComparison> comparisons;
  const std::map<std::string, Arms> suites = arms_of(set);
  for (const auto& [suite, arms] : suites)
    for (size_t i = 1; i < arms.size(); ++i) {
      auto comparison =
          compare_records(arms[0].second, arms[i].second, {.commands = command_registry().present()});
      if (!comparison.ok()) {
        warn(fmt::format("arms '{}' and '{}' of '{}' are not compared: {}", arms[0].first, arms[i].first,
                         suite, comparison.error().message()));
        continue;
      }
      const std::string suite_text = suites.size() > 1 ? " of " + suite : "";
      comparisons.push_back({arms[0].first + suite_text, arms[i].first + suite_text, *std::move(comparison)});
    }
  return comparisons;
}

// The first record whose figures are not valid, with its verdict: "runs/x.jsonl:3: failed: no such file".
std::string first_unusable(const RecordSet& set) {
  for (const StoredRecord& stored : set.records)
    if (!is_usable(stored.record))
      return fmt::format("{}:{}: {}: {}", stored.file.string(), stored.line,
                         verdict_name(stored.record.verdict), stored.record.reason);
  return "";
}

Error no_figures_error(const RecordSet& set) {
  const std::string first = first_unusable(set);
  return make_error(Errc::not_found, "none of the {} has a headline metric with valid figures{}",
                    count_of(set.records.size(), "record"), first.empty() ? "" : "; the first: " + first);
}

Result<void> make_folder(const fs::path& folder) {
  std::error_code failed;
  fs::create_directories(folder, failed);
  if (!failed) return success();
  return make_error(Errc::invalid_argument, "cannot make the folder '{}': {}", folder.string(),
                    failed.message());
}

// Writes the two tables of records, and a table for each picture of the page. Returns how many files it
// wrote.
Result<size_t> write_tables(const fs::path& folder, const RecordSet& set, const report::Page& page) {
  PENSTOCK_TRY(make_folder(folder));
  const ExportedMetrics metrics(set, command_registry().present());
  PENSTOCK_TRY(write_whole_file((folder / "records.csv").string(), "the records", records_csv(set, metrics)));
  PENSTOCK_TRY(write_whole_file((folder / "repeats.csv").string(), "the repeats", repeats_csv(set, metrics)));
  for (const report::Sheet& sheet : page.sheets)
    PENSTOCK_TRY(
        write_whole_file((folder / (sheet.name + ".csv")).string(), "the numbers", report::csv_text(sheet)));
  return page.sheets.size() + 2;
}

// Writes the two files of github-action-benchmark, one for each of its tools. A file without entries is
// removed, because the action fails on it.
Result<void> write_github_files(const fs::path& folder, const RecordSet& set,
                                const ExportedMetrics& metrics) {
  const std::string bigger = github_json(set, metrics, Better::higher);
  const std::string smaller = github_json(set, metrics, Better::lower);
  if (bigger.empty() && smaller.empty()) return no_figures_error(set);
  PENSTOCK_TRY(make_folder(folder));
  for (const auto& [name, text] :
       {std::pair("bigger-is-better.json", &bigger), std::pair("smaller-is-better.json", &smaller)}) {
    std::error_code ignored;
    if (text->empty())
      fs::remove(folder / name, ignored);
    else
      PENSTOCK_TRY(write_whole_file((folder / name).string(), "the benchmarks", *text));
  }
  return success();
}

// Writes what other programs read, and prints how much it is.
Result<int> write_export(const CommandContext& context, std::string_view to, const fs::path& output,
                         const RecordSet& set) {
  const ExportedMetrics metrics(set, command_registry().present());
  const auto unusable = size_t(std::count_if(set.records.begin(), set.records.end(),
                                             [](const auto& stored) { return !is_usable(stored.record); }));
  if (to == "gha") {
    PENSTOCK_TRY(write_github_files(output, set, metrics));
  } else {
    const std::string text = to == "bmf"           ? bencher_json(set, metrics)
                             : to == "openmetrics" ? open_metrics_text(set, metrics)
                                                   : google_benchmark_json(set);
    if (text.empty()) return no_figures_error(set);
    PENSTOCK_TRY(write_whole_file(output.string(), "the benchmarks", text));
  }
  if (unusable > 0 && (to == "gha" || to == "bmf"))
    warn(fmt::format("{} without valid figures left out; the first: {}", count_of(unusable, "record"),
                     first_unusable(set)));
  if (context.output.json)
    fmt::print("{}\n", one_line(Json{{"report", output.string()}, {"records", set.records.size()}}));
  else
    fmt::print("{}: {}\n", output.string(), count_of(set.records.size(), "record"));
  return 0;
}

// The text that is printed when the report is written. In the report, the records of repeated runs are
// joined; `record_count` is the number of records before that. `csv_files` is 0 for a page.
std::string sentences_text(const CommandContext& context, const std::string& output, const RecordSet& set,
                           size_t record_count, const std::vector<report::NamedComparison>& comparisons,
                           const report::Page& page, size_t csv_files) {
  std::vector<std::string> changes;
  for (const report::NamedComparison& one : comparisons)
    changes.push_back(
        fmt::format("From {} to {}: {}", one.base, one.candidate, summary_text(one.comparison, {})));
  if (context.output.json) {
    Json line{{"report", output}, {"records", record_count}, {"problems", set.problems}};
    line["bottom_line"] = page.bottom_line;
    line["sentences"] = changes;
    for (const Sentence& sentence : page.sentences) line["sentences"].push_back(sentence.text);
    return one_line(line) + "\n";
  }
  std::string text;
  const std::string pooled =
      record_count == set.records.size() ? "" : fmt::format(", repeated runs joined: {}", set.records.size());
  if (csv_files > 0)
    return fmt::format("{}: {} of {}{}\n", output, count_of(csv_files, "file"),
                       count_of(record_count, "record"), pooled);
  for (const std::string& change : changes) text += change + "\n";
  for (const std::string& line : page.bottom_line) text += line + "\n";
  text += "\n";
  size_t shown = 0;  // the sentences that are printed; the first may be printed above already
  for (const Tone tone : {Tone::finding, Tone::caution, Tone::failure})
    for (const Sentence* const sentence : leading_sentences(page.sentences, tone, report::kMostSentences)) {
      if (sentence->text != page.bottom_line.front()) text += sentence->text + "\n";
      ++shown;
    }
  if (shown < page.sentences.size())
    text += fmt::format("({} in the report)\n", count_of(page.sentences.size() - shown, "more sentence"));
  return text + fmt::format("{}: {}{}\n", output, count_of(record_count, "record"), pooled);
}

// The path of the report: the value of --output, or the default of the format `to`.
Result<fs::path> output_path(const CommandContext& context, std::string_view to) {
  const bool is_folder = to == "csv" || to == "gha";
  fs::path output = to == "html"          ? "report.html"
                    : to == "openmetrics" ? "openmetrics.txt"
                    : is_folder           ? fmt::format("report-{}", to)
                                          : fmt::format("{}.json", to);
  if (context.options.given("output")) output = context.options.text("output");
  if (output.empty() || (!is_folder && !output.has_filename()))
    return make_error(Errc::invalid_argument, "--output names a {}, not '{}'", is_folder ? "folder" : "file",
                      output.string());
  return output;
}

// The error of --to parquet, with the way to get such a file.
Error parquet_error(const std::vector<fs::path>& paths) {
  std::vector<std::string> words{"penstock", "report"};
  for (const fs::path& path : paths) words.push_back(path.string());
  words.insert(words.end(), {"--to", "csv", "-o", "report-csv"});
  return make_error(
      Errc::unsupported,
      "--to parquet is not supported; to convert the table of records (needs 'pip install pandas pyarrow'): "
      "{} && "
      "python3 -c \"import pandas; pandas.read_csv('report-csv/records.csv').to_parquet('records.parquet')\"",
      shell_line(words));
}

// Makes all comparisons of the report: compares the records with those of --baseline, and the arms of each
// interleaved suite with each other.
Result<std::vector<report::NamedComparison>> comparisons_of(const CommandContext& context,
                                                            const RecordSet& set,
                                                            const std::vector<fs::path>& paths) {
  std::vector<report::NamedComparison> comparisons = compare_arms(set);
  if (!context.options.given("baseline")) return comparisons;
  std::vector<fs::path> base_paths;
  for (const std::string& path : context.options.texts("baseline")) base_paths.emplace_back(path);
  PENSTOCK_ASSIGN(const RecordSet base, records_in(base_paths));
  PENSTOCK_ASSIGN(Comparison comparison,
                  compare_records(base, set, {.commands = command_registry().present()}));
  const std::string base_name = names_of(base_paths);
  const std::string name = names_of(paths);
  comparisons.insert(
      comparisons.begin(),
      report::NamedComparison{base_name == name ? "the baseline" : base_name,
                              base_name == name ? "these records" : name, std::move(comparison)});
  return comparisons;
}

void distinguish_tiers_of(RecordSet& set) {
  std::vector<Record*> records;
  for (StoredRecord& stored : set.records) records.push_back(&stored.record);
  distinguish_tiers(records);
}

Result<int> run_report(const CommandContext& context) {
  std::vector<fs::path> paths(context.positionals.begin(), context.positionals.end());
  if (paths.empty()) paths.emplace_back("penstock-results");
  const std::string& to = context.options.text("to");
  if (to == "parquet") return parquet_error(paths);
  PENSTOCK_ASSIGN(const fs::path output, output_path(context, to));
  PENSTOCK_ASSIGN(RecordSet set, records_in(paths));
  if (to != "html" && to != "csv") {
    distinguish_tiers_of(set);
    return write_export(context, to, output, set);
  }
  PENSTOCK_ASSIGN(const std::vector<report::NamedComparison> comparisons,
                  comparisons_of(context, set, paths));
  const RecordSet stored_set =
      to == "csv" ? set : RecordSet{};  // the tables have a row for each stored record
  const size_t record_count = set.records.size();
  pool_rounds(set.records);
  distinguish_tiers_of(set);
  const report::Page page =
      report::make_page(set, context.output, context.options.text("title"), comparisons);
  size_t csv_files = 0;
  if (to == "csv") {
    PENSTOCK_ASSIGN(csv_files, write_tables(output, stored_set, page));
  } else {
    PENSTOCK_TRY(write_whole_file(output.string(), "the report", page.html));
  }
  print_text(sentences_text(context, output.string(), set, record_count, comparisons, page, csv_files));
  return 0;
}

}  // namespace

extern const CommandInfo command_report;
const CommandInfo command_report{
    .name = "report",
    .summary = "one self-contained HTML page: what each tier delivers, in charts, tables and sentences",
    .options = kReportOptions,
    .run = run_report,
    .synopsis = "penstock report [RESULTS]... [--baseline RESULTS] [--to FORMAT] [-o FILE|DIR]",
    .examples = {"penstock report -o report.html                # every record in penstock-results/",
                 "penstock report tuesday/ --baseline monday/ -o both.html   # and what changed since"},
    .arguments = "[RESULTS]...",
};

}  // namespace penstock
