#include "benchmarks/probe/probe_report.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "benchmarks/probe/probe_metrics.hpp"
#include "io_backends/core/cli/count_of.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/cells/verdicts.hpp"
#include "results/record/json_members.hpp"
#include "results/record/statistics.hpp"

namespace penstock {
namespace {

// The names of metadata probes begin with this prefix, as in "metadata.create".
constexpr std::string_view kMetadataPrefix = "metadata.";

// A line about ranks whose median rates differ, although they did the same work; "" if they do not differ.
std::string ranks_text(const Record& record, const std::string& tier, const std::string& probe,
                       const Output& output) {
  const Json& clients = record.parameters["threads"];
  const std::string difference = rank_difference_text(
      fmt::format("{}, {}, {}: the ranks", tier, count_of(clients.get<uint64_t>(), "client"), probe),
      rank_rates(record, probe + "."), output);
  return difference.empty() ? "" : difference + "\n";
}

std::string spread_text(const Metric& rate) {
  return rate.samples.size() > 1 ? format_percent(spread(rate.samples)) : "-";
}

// The verdict of one probe, and whether its repeats differ much: "short, noisy".
std::string remarks_of(const Record& record, const std::string& probe) {
  std::string text = member_text(member_object(record.parameters, "verdicts"), probe);
  if (spread(record.metrics.at(probe + ".ops_per_s").samples) > kNoisySpread)
    text += text.empty() ? "noisy" : ", noisy";
  return text;
}

// Lines that name each probe that was not measured, with the reason. If several client counts give the same
// line, it appears once.
std::string left_out_text(std::span<const Record> records) {
  std::string text;
  std::set<std::string> added_lines;
  for (const Record& record : records) {
    for (const auto& [probe, why] : member_object(record.parameters, "left_out").items()) {
      const std::string line =
          fmt::format("{}: no {}: {}\n", record.parameters.value("tier", "-"), probe, any_text(why));
      if (added_lines.insert(line).second) text += line;
    }
  }
  return text;
}

}  // namespace

bool is_before_by_numbers(std::string_view a, std::string_view b) {
  const auto number = [](std::string_view text) {
    uint64_t value = 0;
    const char* const end = std::from_chars(text.data(), text.data() + text.size(), value).ptr;
    return std::pair(value, size_t(end - text.data()));
  };
  while (!a.empty() && !b.empty()) {
    const auto [first, first_digits] = number(a);
    const auto [second, second_digits] = number(b);
    if (first_digits > 0 && second_digits > 0) {
      if (first != second) return first < second;
      a.remove_prefix(first_digits);
      b.remove_prefix(second_digits);
    } else {
      if (a.front() != b.front()) return a.front() < b.front();
      a.remove_prefix(1);
      b.remove_prefix(1);
    }
  }
  return a.size() < b.size();
}

std::vector<std::string> probes_of(const Record& record) {
  constexpr std::string_view kRateSuffix = ".ops_per_s";
  std::vector<std::string> probes;
  for (const auto& [name, metric] : record.metrics)
    if (name.ends_with(kRateSuffix)) probes.push_back(name.substr(0, name.size() - kRateSuffix.size()));
  std::sort(probes.begin(), probes.end(), is_before_by_numbers);
  return probes;
}

Trial probe_record(const Run& run, const Tier& tier, const ProbeCell& cell, uint64_t bytes_read) {
  Trial trial = run.trial();
  trial.parameter("tier", tier.name);
  trial.parameter("threads", cell.clients);
  trial.tier("data", tier);
  trial.cache(cache_json(cell.cache));
  Json loops = Json::object();
  Json verdicts = Json::object();  // of each probe that is not ok
  const int ranks = run.ranks();
  if (ranks > 1) trial.parameter("rank_scaling", "weak");
  const double clients = double(cell.clients) * ranks;
  for (const ProbeFigure& figure : cell.figures) {
    if (!figure.loop.empty()) loops[figure.name] = figure.loop;
    if (figure.verdict != Verdict::ok) verdicts[figure.name] = verdict_name(figure.verdict);
    for (const std::vector<RankFigures>& ranks_of_repeat : figure.ranks)
      record_ranks(ranks_of_repeat, probe_metrics::kRankRates, trial, figure.name);
    for (const double rate : figure.bytes_per_s) {
      trial.sample(probe_metrics::kByteRate, figure.name, rate);
      trial.sample(probe_metrics::kByteRateOfClient, figure.name, rate / clients);
    }
    for (const double rate : figure.ops_per_s) {
      if (figure.name.starts_with(kMetadataPrefix))
        trial.sample(probe_metrics::kMetadataRate, figure.name.substr(kMetadataPrefix.size()), rate);
      else
        trial.sample(probe_metrics::kOpRate, figure.name, rate);
      trial.sample(probe_metrics::kOpRateOfClient, figure.name, rate / clients);
    }
  }
  trial.parameter("loops", std::move(loops));
  if (!verdicts.empty()) trial.parameter("verdicts", std::move(verdicts));
  if (!cell.left_out.empty()) trial.parameter("left_out", Json(cell.left_out));
  trial.sample(shared_metrics::kTierBytesRead, double(bytes_read));
  trial.verdict(cell.verdict, cell.reason);
  return trial;
}

std::string probe_table(std::span<const Record> records, const Output& output) {
  Table table({{"tier", Align::left},
               {"clients"},
               {"what", Align::left},
               {std::string(rate_unit(output))},
               {"ops/s"},
               {"spread"},
               {"", Align::left}});
  for (const Record& record : records) {
    const std::string recorded_name = member_text(record.parameters, "tier");
    const std::string tier = recorded_name.empty() ? "-" : recorded_name;
    const auto threads = member_number(record.parameters, "threads");
    const std::string clients = threads ? fmt::format("{:.0f}", *threads) : "-";
    const std::string verdict =
        record.verdict == Verdict::ok ? "" : std::string(verdict_name(record.verdict));
    const std::vector<std::string> probes = probes_of(record);
    for (const std::string& probe : probes) {
      const auto byte_rate = record.metrics.find(probe + ".bytes_per_s");
      table.row({tier, clients, probe,
                 byte_rate == record.metrics.end() ? "-" : format_rate(byte_rate->second.value(), output),
                 format_number(record.metrics.at(probe + ".ops_per_s").value(), output),
                 spread_text(record.metrics.at(probe + ".ops_per_s")), remarks_of(record, probe)});
    }
    if (probes.empty()) table.row({tier, clients, "-", "-", "-", "-", verdict + ": " + record.reason});
  }
  const auto ranks = records.empty() ? 1 : records[0].parameters.value("ranks", 1);
  std::string text;
  if (ranks > 1)
    text = fmt::format(
        "{} ranks, each with separate files (weak scaling); clients are per rank, rates are totals over all "
        "ranks by the time of the slowest\n\n",
        ranks);
  text += table.text();
  for (const Record& record : records)
    if (record.verdict != Verdict::ok && !probes_of(record).empty())
      text += fmt::format("{}, clients {}: {}\n", member_text(record.parameters, "tier"),
                          any_text(record.parameters["threads"]), record.reason);
  text += left_out_text(records);
  for (const Record& record : records)
    for (const std::string& probe : probes_of(record))
      text += ranks_text(record, record.parameters["tier"].get<std::string>(), probe, output);
  return text;
}

}  // namespace penstock
