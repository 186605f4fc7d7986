// Two sections of the report page: one compares jobs with different numbers of ranks, the other compares
// `read` with other programs on the same tiers.
#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "benchmarks/read/read_metrics.hpp"
#include "benchmarks/read/view/read_charts.hpp"
#include "benchmarks/read/view/read_parts.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/rank_figures.hpp"
#include "results/import/foreign.hpp"
#include "results/record/statistics.hpp"
#include "results/report/html.hpp"

namespace penstock::report {
namespace {

using namespace read_metrics;

using Kind = HtmlTable::Kind;

HtmlTable ranks_table(const ReadGroup& group, const PageState& state) {
  const std::string unit(rate_unit(state.output));
  HtmlTable table("Reading with more ranks, " + group.title,
                  {{"tier and threads", Kind::words, ""},
                   {"ranks", Kind::number, ""},
                   {"nodes", Kind::number, ""},
                   {unit, Kind::number, "of all ranks together, median of the repeats"},
                   {"spread", Kind::number, "by how much the repeats differ: (max - min) / median"},
                   {"scaling", Kind::number, "against the fewest ranks"},
                   {"slowest rank", Kind::number, unit},
                   {"fastest rank", Kind::number, unit},
                   {"record", Kind::number, ""}});
  for (const ReadCurve& curve : group.curves) {
    const double base = find_metric(*curve.by_count.begin()->second, kPayloadRate)->value();
    for (const auto& [ranks, record] : curve.by_count) {
      const Metric& rate = *find_metric(*record, kPayloadRate);
      table.row({text(curve.tier), text(std::to_string(ranks)), text(std::to_string(node_count(*record))),
                 text(format_rate(rate.value(), state.output)),
                 text(rate.samples.size() > 1 ? format_percent(spread(rate.samples)) : "-"),
                 text(base > 0 ? format_ratio(rate.value() / base, state.output) : "-"),
                 text(rate_or_dash(metric_value(*record, kRankRatesOfRepeat.least), state.output)),
                 text(rate_or_dash(metric_value(*record, kRankRatesOfRepeat.most), state.output)),
                 state.record_link(*record)});
    }
  }
  return table;
}

HtmlTable depth_table(const ReadGroup& group, const PageState& state) {
  const Record& first = *group.curves.front().by_count.begin()->second;
  HtmlTable table("Reading at several depths, " + group.title,
                  {{"tier and threads", Kind::words, ""},
                   {"depth", Kind::number, "reads in flight of each thread"},
                   {std::string(rate_unit(state.output)), Kind::number, "median of the repeats"},
                   {sample_rate_unit(first), Kind::number, "median of the repeats"},
                   {"spread", Kind::number, "by how much the repeats differ: (max - min) / median"},
                   {"p50 ms", Kind::number, "half of the samples took at most this long"},
                   {"p99 ms", Kind::number, "99% of the samples took at most this long"},
                   {"record", Kind::number, ""}});
  for (const ReadCurve& curve : group.curves)
    for (const auto& [depth, record] : curve.by_count) {
      const Metric& rate = *find_metric(*record, kPayloadRate);
      table.row({text(curve.tier), text(std::to_string(depth)), text(format_rate(rate.value(), state.output)),
                 text(or_dash(metric_value(*record, kSampleRate), format_number, state.output)),
                 text(rate.samples.size() > 1 ? format_percent(spread(rate.samples)) : "-"),
                 text(or_dash(metric_value(*record, kLatencyP50), format_ms, state.output)),
                 text(or_dash(metric_value(*record, kLatencyP99), format_ms, state.output)),
                 state.record_link(*record)});
    }
  return table;
}

}  // namespace

std::string ranks_section(std::span<const Record> records, PageState& state) {
  const std::vector<ReadGroup> groups = rank_groups(records);
  if (groups.empty()) return "";
  std::string out =
      state.open_section("ranks", "Ranks",
                         "One job over several processes, which share the samples of every pass. Rates are "
                         "those of all ranks together, to the end of the slowest.",
                         state.answers({"rank_scaling"}));
  for (size_t i = 0; i < groups.size(); ++i)
    out += part_html(i, group_anchor("ranks", i), groups[i].title,
                     state.add_chart_with_table(ranks_chart(groups[i], "ranks", state.output),
                                                ranks_table(groups[i], state)));
  return out + "</section>\n";
}

std::string depth_section(std::span<const Record> records, PageState& state) {
  const std::vector<ReadGroup> groups = depth_groups(records);
  if (groups.empty()) return "";
  std::string out = state.open_section("depth", "Queue depth",
                                       "The depth is the number of reads that each thread has in flight.",
                                       state.answers({"depth_scaling"}));
  for (size_t i = 0; i < groups.size(); ++i)
    out += part_html(i, group_anchor("depth", i), groups[i].title,
                     state.add_chart_with_table(ranks_chart(groups[i], "depth", state.output),
                                                depth_table(groups[i], state)));
  return out + "</section>\n";
}

std::string peers_section(std::span<const Record> records, PageState& state) {
  const std::string unit(rate_unit(state.output));
  std::vector<HtmlTable::Column> columns{{"program", Kind::words, ""},
                                         {"tier", Kind::words, ""},
                                         {"work", Kind::words, "as far as its output shows"},
                                         {"threads", Kind::number, ""},
                                         {unit, Kind::number, ""},
                                         {"operations/s", Kind::number, "or what the program counts as one"},
                                         {"p50 ms", Kind::number, "of one operation"},
                                         {"p99 ms", Kind::number, "of one operation"}};
  const bool has_utilization = std::any_of(records.begin(), records.end(), [](const Record& record) {
    return is_peer(record) && metric_value(record, kDlioUtilization);
  });
  if (has_utilization)
    columns.push_back({"AU", Kind::number, "accelerator utilization by DLIO's definition"});
  columns.push_back({"record", Kind::number, ""});
  HtmlTable table("Imported from other programs", std::move(columns));
  for (const Record& record : records) {
    if (!is_peer(record)) continue;
    const auto op_rate = metric_value(record, kOpRate);
    std::vector<Markup> cells{
        text(peer_program(record)),
        text(record.parameters.contains("tier") ? tier_name(record) : "-"),
        text(peer_work(record)),
        text(parameter_text(record, "threads")),
        text(rate_or_dash(metric_value(record, kPayloadRate), state.output)),
        text(or_dash(op_rate ? op_rate : metric_value(record, kSampleRate), format_number, state.output)),
        text(or_dash(metric_value(record, kLatencyP50), format_ms, state.output)),
        text(or_dash(metric_value(record, kLatencyP99), format_ms, state.output))};
    if (has_utilization)
      cells.push_back(text(or_dash(metric_value(record, kDlioUtilization), format_percent)));
    cells.push_back(state.record_link(record));
    table.row(std::move(cells));
  }
  if (table.empty()) return "";
  std::string answer = state.answers({"peers"});
  if (answer.empty())
    answer = answer_html(
        "There is no record of read to compare with: none has a tier of the same name and the same number of "
        "threads.",
        "");
  return state.open_section("peers", "Other programs",
                            "Their work differs: another order, other blocks, often another cache state. If "
                            "tier and threads are "
                            "the same, the charts of Reading show them too.",
                            answer) +
         table.html() + "</section>\n";
}

}  // namespace penstock::report
