// The section "Reading" of the report page: bandwidth over threads, and latency, for each group of comparable
// cells.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/read_report.hpp"
#include "benchmarks/read/view/read_charts.hpp"
#include "benchmarks/read/view/read_parts.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/record/json_members.hpp"
#include "results/record/statistics.hpp"
#include "results/report/html.hpp"

namespace penstock::report {
namespace {

using namespace read_metrics;

using Kind = HtmlTable::Kind;

std::string number_or_dash(std::optional<double> value, const Output& output, double scale = 1) {
  return value ? format_number(*value * scale, output) : "-";
}

std::string cache_cell(const Record& record) {
  std::string state = cache_text(record, "client_data");
  if (const auto resident = member_number(record.cache, "resident_fraction_before"))
    state += fmt::format(" ({})", format_percent(*resident));
  return state.empty() ? "-" : state;
}

Markup tier_cell(const Record& record) {
  const std::string emulated = emulation(record);
  return Markup{
      escape(tier_name(record)) +
      (emulated.empty() ? "" : " <span class=\"mark\" title=\"" + escape(emulated) + "\">emulated</span>")};
}

std::string interval_text(const Metric& rate, const Output& output) {
  const RepeatRange repeats = repeat_range(rate);
  return repeats.is_interval ? fmt::format("{} to {}", format_rate(repeats.range.low, output),
                                           format_rate(repeats.range.high, output))
                             : "-";
}

HtmlTable bandwidth_table(const ReadGroup& group, const PageState& state) {
  HtmlTable table(
      "Reading, " + group.title,
      {{"tier", Kind::words, ""},
       {"threads", Kind::number, ""},
       {sample_rate_unit(*group.curves.front().by_count.begin()->second), Kind::number,
        "delivered, median of the repeats"},
       {std::string(rate_unit(state.output)), Kind::number, "payload, median of the repeats"},
       {"95% of median", Kind::number,
        "95% confidence interval of the median; it needs at least six repeats"},
       {"spread", Kind::number, "by how much the repeats differ: (max - min) / median"},
       {"scaling", Kind::number, "against the fewest threads, the median of the repeats' ratios"},
       {"baseline", Kind::number, "against the simplest possible loop on the same work"},
       {"of ceiling", Kind::number,
        "this row against the best that probes of this tier reached with the same clients"},
       {"CPU s/GB", Kind::number,
        "processor time of all threads for each 10^9 bytes, without the kernel's own threads"},
       {"client cache", Kind::words,
        "where the data was, and how much of it was in this machine's page cache before each repeat"},
       {"verdict", Kind::words, ""},
       {"record", Kind::number, ""}});
  for (const ReadCurve& curve : group.curves)
    for (const auto& [threads, record] : curve.by_count) {
      const Metric* rate = find_metric(*record, kPayloadRate);
      const auto baseline = baseline_ratio(*record);
      const auto scaling = scaling_ratio(curve, *record);
      const auto ceiling_fraction = metric_value(*record, kCeilingFraction);
      table.row({tier_cell(*record), text(std::to_string(threads)),
                 text(number_or_dash(metric_value(*record, kSampleRate), state.output)),
                 text(rate_or_dash(metric_value(*record, kPayloadRate), state.output)),
                 text(rate ? interval_text(*rate, state.output) : "-"),
                 text(rate && rate->samples.size() > 1 ? format_percent(spread(rate->samples)) : "-"),
                 text(scaling ? format_ratio(scaling->middle, state.output) : "-"),
                 text(baseline_text(baseline, format_percent)), text(ceiling_text(ceiling_fraction)),
                 text(or_dash(cpu_seconds_per_gb(*record), format_number, state.output)),
                 text(cache_cell(*record)), Markup{verdict_html(record->verdict)},
                 state.record_link(*record)});
    }
  return table;
}

// A table with a column for each of the groups that differ from `group` only in their labels. It is empty
// unless `group` is the first of at least two such groups.
HtmlTable label_table(const ReadGroup& group, const std::vector<ReadGroup>& groups, const PageState& state) {
  std::vector<const ReadGroup*> compared;
  for (const ReadGroup& other : groups)
    if (other.work == group.work && other.cache == group.cache) compared.push_back(&other);
  std::vector<HtmlTable::Column> columns{{"tier", Kind::words, ""}, {"threads", Kind::number, ""}};
  for (const ReadGroup* other : compared)
    columns.push_back(
        {(other->label.empty() ? "no label" : other->label) + ", " + std::string(rate_unit(state.output)),
         Kind::number, "payload: median and spread of the repeats"});
  HtmlTable table("Labels side by side, " + group.cache, columns);
  if (compared.size() < 2 || compared.front() != &group) return table;
  std::map<std::pair<std::string, uint64_t>, std::vector<std::string>> rows;
  for (size_t i = 0; i < compared.size(); ++i)
    for (const ReadCurve& curve : compared[i]->curves)
      for (const auto& [threads, record] : curve.by_count) {
        auto& row = rows[{curve.tier, threads}];
        row.resize(compared.size(), "-");
        if (const Metric* rate = find_metric(*record, kPayloadRate))
          row[i] =
              format_rate(rate->value(), state.output) +
              (rate->samples.size() > 1 ? fmt::format(", spread {}", format_percent(spread(rate->samples)))
                                        : ", one repeat");
      }
  for (const auto& [key, rates] : rows) {
    std::vector<std::string> row{key.first, std::to_string(key.second)};
    row.insert(row.end(), rates.begin(), rates.end());
    table.row(row);
  }
  return table;
}

HtmlTable latency_table(const ReadGroup& group, const Output& output) {
  HtmlTable table("Latency of one sample from open to close in ms, " + group.title,
                  {{"tier", Kind::words, ""},
                   {"threads", Kind::number, ""},
                   {"p50", Kind::number, "half of the samples took at most this long"},
                   {"p95", Kind::number, ""},
                   {"p99", Kind::number, ""},
                   {"p99.9", Kind::number, ""},
                   {"p99 / p50", Kind::number, "how much longer the tail is"}});
  for (const ReadCurve& curve : group.curves)
    for (const auto& [threads, record] : curve.by_count) {
      const auto p50 = metric_value(*record, kLatencyP50);
      const auto p99 = metric_value(*record, kLatencyP99);
      if (!p50 && !p99) continue;
      table.row({curve.tier, std::to_string(threads), number_or_dash(p50, output, 1e-6),
                 number_or_dash(metric_value(*record, kLatencyP95), output, 1e-6),
                 number_or_dash(p99, output, 1e-6),
                 number_or_dash(metric_value(*record, kLatencyP999), output, 1e-6),
                 p50 && p99 && *p50 > 0 ? format_ratio(*p99 / *p50, output) : "-"});
    }
  return table;
}

}  // namespace

std::string read_section(std::span<const Record> records, PageState& state) {
  const std::vector<ReadGroup> groups = read_groups(records);
  if (groups.empty()) return "";
  const std::vector<PeerCurve> peers = peer_curves(records);
  std::string out = state.open_section(
      "reading", "Reading",
      "Solid lines show the median of the repeats. With six repeats or more, the band is the "
      "95% confidence interval of the median; with fewer, a bar goes from the slowest to the "
      "fastest repeat. Dashed: the baseline, a simple loop over the same samples. Dotted: the "
      "ceiling, the highest rate that probes of this tier reached with the same clients. "
      "Dashes and dots: other programs.",
      state.answers({"scaling", "ceiling", "accelerators", "tiers"}));
  for (size_t i = 0; i < groups.size(); ++i) {
    const ReadGroup& group = groups[i];
    std::string body;
    std::string charts;
    const auto add_chart = [&](Chart chart) {
      if (!chart.series.empty()) charts += state.add_chart(std::move(chart));
    };
    add_chart(bandwidth_chart(group, peers, state.tiers, state.output));
    const HtmlTable latency = latency_table(group, state.output);
    if (!latency.empty()) {
      add_chart(latency_chart(group, state.tiers));
      add_chart(distribution_chart(group, state.tiers));
    }
    if (!charts.empty()) body += "<div class=\"charts\">\n" + charts + "</div>\n";
    body += bandwidth_table(group, state).html();
    if (const HtmlTable labels = label_table(group, groups, state); !labels.empty()) body += labels.html();
    if (!latency.empty())
      body +=
          "<details class=\"part\"><summary>Latency in numbers</summary>\n" + latency.html() + "</details>\n";
    out += part_html(i, group_anchor("reading", i), group.title, body);
  }
  return out + "</section>\n";
}

}  // namespace penstock::report
