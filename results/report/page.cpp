#include "results/report/page.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"
#include "results/cells/verdicts_parts.hpp"
#include "results/report/frame.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

std::string describe_set(const std::vector<Record>& records) {
  std::set<std::string> commands, hosts, days;
  for (const Record& record : records) {
    commands.insert(record.command);
    if (const std::string host = environment_text(record, "host"); !host.empty()) hosts.insert(host);
    if (record.started.size() >= 10) days.insert(record.started.substr(0, 10));
  }
  std::string text = fmt::format("{} of {}", count_of(records.size(), "record"),
                                 verdicts::enumerate({commands.begin(), commands.end()}));
  if (!hosts.empty()) text += " on " + verdicts::enumerate({hosts.begin(), hosts.end()}, 3);
  if (days.size() == 1) text += ", " + *days.begin();
  if (days.size() > 1) text += ", " + *days.begin() + " to " + *days.rbegin();
  return text;
}

// Describes the corpora that the records name.
std::string describe_corpora(const std::vector<Record>& records, const Output& output) {
  std::vector<std::string> corpora;
  for (const Record& record : records) {
    const auto samples = record.corpus.find("samples");
    const auto bytes = record.corpus.find("bytes");
    if (samples == record.corpus.end() || bytes == record.corpus.end() || !samples->is_number_unsigned() ||
        !bytes->is_number_unsigned())
      continue;
    std::string text =
        fmt::format("{}: {}, {}", corpus_name(record), count_of(samples->get<uint64_t>(), "sample"),
                    format_bytes(bytes->get<double>(), output));
    if (std::find(corpora.begin(), corpora.end(), text) == corpora.end()) corpora.push_back(std::move(text));
  }
  return verdicts::enumerate(corpora, 3);
}

// Warns if rows have the repeats of several runs. The rounds of a sweep are meant to be one measurement, so
// they need no warning.
std::optional<Sentence> describe_joined(const RecordSet& set) {
  size_t rows = 0;
  size_t runs = 0;
  for (const StoredRecord& stored : set.records) {
    if (stored.runs < 2 || stored.record.label.contains("sweep")) continue;
    ++rows;
    runs += stored.runs;
  }
  if (rows == 0) return std::nullopt;
  return Sentence{Tone::caution, "joined",
                  fmt::format("{} {} the repeats of {} runs of the same work. To compare runs, give each a "
                              "--label, or pass the earlier ones by --baseline.",
                              count_of(rows, "row"), rows == 1 ? "joins" : "join", runs),
                  "records"};
}

}  // namespace

Page make_page(const RecordSet& set, const Output& output, const std::string& title,
               const std::vector<NamedComparison>& comparisons) {
  std::vector<Record> records;
  std::vector<std::string> origins;
  std::string lines;
  for (const StoredRecord& stored : set.records) {
    records.push_back(stored.record);
    origins.push_back(fmt::format("{}:{}", stored.file.filename().string(), stored.line));
    lines += script_json(to_json(stored.record)) + "\n";
  }
  PageState state;
  state.output = output;
  state.sentences = sentences(records, output);
  if (auto joined = describe_joined(set)) state.sentences.push_back(*std::move(joined));
  state.first_record = records.data();
  // The sections must be made in this order: it decides colours, chart numbers and the table of contents.
  std::string body = headline_section(records, set.problems, state);
  body += comparison_section(comparisons, state);
  for (const RecordView* const view : ordered_views()) body += view->section(records, state);
  body += series_section(records, state);
  body += other_section(records, state);
  body += environment_section(records, state);
  body += records_section(records, origins, state);
  std::vector<std::string> subtitles{describe_set(records)};
  if (std::string corpora = describe_corpora(records, output); !corpora.empty())
    subtitles.push_back(std::move(corpora));
  std::string html = frame_page(title, subtitles, body, state, lines);
  return {std::move(html), std::move(state.sentences), std::move(state.sheets)};
}

}  // namespace penstock::report
