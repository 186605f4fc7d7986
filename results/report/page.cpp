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
#include "results/record/json_members.hpp"
#include "results/report/frame.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

std::string describe_set(const std::vector<Record>& records, const Output& output) {
  std::set<std::string> commands, hosts, days;
  for (const Record& record : records) {
    commands.insert(record.command);
    if (const std::string host = environment_text(record, "host"); !host.empty()) hosts.insert(host);
    if (record.started.size() >= 10) days.insert(record.started.substr(0, 10));
  }
  std::string text = fmt::format("{} of {}", count_of(records.size(), "record", output),
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
        fmt::format("{}: {}, {}", corpus_name(record), count_of(samples->get<uint64_t>(), "sample", output),
                    format_bytes(bytes->get<double>(), output));
    if (std::find(corpora.begin(), corpora.end(), text) == corpora.end()) corpora.push_back(std::move(text));
  }
  return verdicts::enumerate(corpora, 3);
}

// Machines that differ only in their names, or in how many of their processors the runs might use.
struct MachineKind {
  std::string model;
  std::string memory_and_kernel;
  double fewest_processors = 0;  // 0: unknown
  double most_processors = 0;
  std::set<std::string> hosts;
};

std::vector<MachineKind> machine_kinds(const std::vector<Record>& records, const Output& output) {
  std::vector<MachineKind> kinds;
  for (const Record& record : records) {
    MachineKind found{environment_text(record, "cpu"), "", 0, 0, {}};
    if (const auto memory = member_number(record.environment, "memory_bytes"); memory && *memory > 0)
      found.memory_and_kernel = ", " + format_bytes(*memory, output) + " RAM";
    if (const std::string kernel = environment_text(record, "kernel"); !kernel.empty())
      found.memory_and_kernel += ", " + kernel;
    if (const std::string host = environment_text(record, "host"); !host.empty()) found.hosts.insert(host);
    if (const Json* const ranks = member(record.environment, "ranks"); ranks != nullptr && ranks->is_array())
      for (const Json& rank : *ranks)
        if (std::string host = member_text(rank, "host"); !host.empty()) found.hosts.insert(std::move(host));
    const double processors = member_number(record.environment, "cpu_count").value_or(0);
    auto at = std::find_if(kinds.begin(), kinds.end(), [&](const MachineKind& kind) {
      return kind.model == found.model && kind.memory_and_kernel == found.memory_and_kernel;
    });
    if (at == kinds.end()) at = kinds.insert(kinds.end(), std::move(found));
    at->hosts.insert(found.hosts.begin(), found.hosts.end());
    if (processors < 1) continue;
    at->fewest_processors =
        at->most_processors < 1 ? processors : std::min(at->fewest_processors, processors);
    at->most_processors = std::max(at->most_processors, processors);
  }
  return kinds;
}

// The machines of the records: "bench-1: 8 processors (Some Xeon), 23.5 GiB RAM, Linux 6.1.0".
std::vector<std::string> machine_texts(const std::vector<Record>& records, const Output& output) {
  std::vector<std::string> texts;
  for (const MachineKind& kind : machine_kinds(records, output)) {
    std::string text = verdicts::enumerate({kind.hosts.begin(), kind.hosts.end()}, 3);
    if (kind.hosts.size() > 1) text += " (each)";
    std::string facts;
    if (kind.most_processors >= 1)
      facts = kind.fewest_processors < kind.most_processors
                  ? fmt::format(", {:.0f} to {:.0f} processors used", kind.fewest_processors,
                                kind.most_processors)
                  : fmt::format(", {:.0f} processor{}", kind.most_processors,
                                kind.most_processors > 1 ? "s" : "");
    if (!kind.model.empty()) facts += facts.empty() ? ", " + kind.model : " (" + kind.model + ")";
    facts += kind.memory_and_kernel;
    if (!facts.empty()) text += (text.empty() ? "" : ": ") + facts.substr(2);
    if (!text.empty()) texts.push_back(std::move(text));
  }
  return texts;
}

// The tiers of the records: "disk: ext4 on /dev/vda1".
std::vector<std::string> tier_texts(const std::vector<Record>& records) {
  std::vector<std::string> texts;
  for (const Record& record : records)
    for (const auto& [role, tier] : record.tiers.items()) {
      const std::string name = role == "data" ? tier_name(record) : role_name(record, role);
      const std::string file_system = tier.is_object() ? member_text(tier, "fs_type") : "";
      const std::string device = tier.is_object() ? member_text(tier, "device") : "";
      if (name.empty() || file_system.empty()) continue;
      std::string text = name + ": " + file_system;
      if (!device.empty() && device != file_system) text += " on " + device;
      if (std::find(texts.begin(), texts.end(), text) == texts.end()) texts.push_back(std::move(text));
    }
  return texts;
}

// The hardware of all records in one line, with the size of the data compared with the memory.
std::string describe_hardware(const std::vector<Record>& records, const Output& output) {
  std::vector<std::string> parts;
  if (const auto machines = machine_texts(records, output); !machines.empty())
    parts.push_back(verdicts::enumerate(machines, 3));
  if (const auto tiers = tier_texts(records); !tiers.empty()) parts.push_back(verdicts::enumerate(tiers));
  double least = 0;
  double most = 0;
  for (const Record& record : records) {
    const double over_ram = member_number(record.corpus, "over_ram").value_or(0);
    if (over_ram <= 0) continue;
    least = least > 0 ? std::min(least, over_ram) : over_ram;
    most = std::max(most, over_ram);
  }
  if (most > 0)
    parts.push_back(
        format_percent(least) == format_percent(most)
            ? fmt::format("data are {} of the RAM", format_percent(most))
            : fmt::format("data are {} to {} of the RAM", format_percent(least), format_percent(most)));
  return fmt::format("{}", fmt::join(parts, "; "));
}

// A title for the page: what was measured, and on which tiers.
std::string default_title(const std::vector<Record>& records,
                          const std::vector<NamedComparison>& comparisons) {
  std::vector<std::string> topics;
  std::set<std::string> shown_commands;
  for (const RecordView* const view : ordered_views())
    for (const Record& record : records) {
      if (!view->has_row(record)) continue;
      shown_commands.insert(record.command);
      if (std::find(topics.begin(), topics.end(), view->topic) == topics.end())
        topics.emplace_back(view->topic);
    }
  std::set<std::string> tiers;
  for (const Record& record : records) {
    const RecordView* const view = find_view(record.command);
    const std::string topic = view == nullptr ? record.command : std::string(view->topic);
    if (!shown_commands.contains(record.command) &&
        std::find(topics.begin(), topics.end(), topic) == topics.end())
      topics.push_back(topic);
    for (const auto& [role, tier] : record.tiers.items())
      if (const std::string name = role == "data" ? tier_name(record) : role_name(record, role);
          !name.empty())
        tiers.insert(name);
  }
  std::string title = verdicts::enumerate(topics);
  if (title.empty()) return "Results";
  if (title.front() >= 'a' && title.front() <= 'z') title.front() = char(title.front() - 'a' + 'A');
  if (!comparisons.empty())
    return fmt::format("{}: {} against {}", title, comparisons[0].candidate, comparisons[0].base);
  if (!tiers.empty()) title += ": " + verdicts::enumerate({tiers.begin(), tiers.end()});
  return title;
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
  const auto all_sentences = [&](const Output& where) {
    std::vector<Sentence> all = sentences(records, where);
    describe_regressions(comparisons, all);
    if (auto joined = describe_joined(set)) all.push_back(*std::move(joined));
    return all;
  };
  const auto lines_at_top = [&](const Output& where) {
    std::vector<std::string> of_comparisons = comparison_bottom_line(comparisons, where);
    return of_comparisons.empty() ? bottom_line(records, where) : of_comparisons;
  };
  PageState state;
  state.output = output;
  state.output.groups_digits = true;
  state.sentences = all_sentences(state.output);
  state.first_record = records.data();
  // The sections must be made in this order: it decides colours, chart numbers and the table of contents.
  std::string body = headline_section(records, set.problems, lines_at_top(state.output), state);
  body += comparison_section(comparisons, state);
  body += tiers_section(records, state);
  for (const RecordView* const view : ordered_views()) body += view->section(records, state);
  body += series_section(records, state);
  body += other_section(records, state);
  body += environment_section(records, state);
  body += records_section(records, origins, state);
  std::vector<std::string> subtitles{describe_set(records, state.output)};
  if (std::string corpora = describe_corpora(records, state.output); !corpora.empty())
    subtitles.push_back(std::move(corpora));
  if (std::string hardware = describe_hardware(records, state.output); !hardware.empty())
    subtitles.insert(subtitles.begin(), std::move(hardware));
  std::string html =
      frame_page(title.empty() ? default_title(records, comparisons) : title, subtitles, body, state, lines);
  return {std::move(html), lines_at_top(output), all_sentences(output), std::move(state.sheets)};
}

}  // namespace penstock::report
