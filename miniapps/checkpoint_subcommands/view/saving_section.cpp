// The section "Checkpoints" of the report page: how long each way of saving blocks the training, and what
// both tiers do meanwhile.
#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "miniapps/checkpoint/saving_metrics.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"
#include "miniapps/checkpoint_subcommands/view/saving_charts.hpp"
#include "miniapps/checkpoint_subcommands/view/saving_parts.hpp"
#include "miniapps/train/view/train_cells.hpp"
#include "results/cells/cells.hpp"
#include "results/record/statistics.hpp"
#include "results/report/bars.hpp"
#include "results/report/html.hpp"

namespace penstock::report {
namespace {

using namespace saving_metrics;
using namespace bench_metrics;

using Kind = HtmlTable::Kind;

template <class Metric>
std::string seconds_of(const SavingRuns& row, const Metric& metric) {
  return or_dash(row.median_of(metric), format_seconds);
}

std::optional<double> longest_block(const SavingRuns& runs) {
  const std::vector<double> blocks = samples_of(runs.runs, kBlockTime);
  if (blocks.empty()) return std::nullopt;  // every save was skipped
  return percentile(blocks, 100);
}

std::string block_bars(const std::string& title, const std::vector<SavingRuns>& rows, PageState& state) {
  const bool has_ceilings = std::any_of(
      rows.begin(), rows.end(), [](const SavingRuns& row) { return allowed_block_s(row).has_value(); });
  std::vector<Bar> bars;
  for (const SavingRuns& row : rows) {
    const double median_s = row.median_of(kBlockTime).value_or(0);
    const double allowed_s = std::min(median_s, allowed_block_s(row).value_or(0));
    Bar bar{row.name, {}};
    if (has_ceilings) bar.segments.push_back({"busy", "what its tier's ceiling allows", allowed_s});
    bar.segments.push_back(
        {"starved", has_ceilings ? "more, up to the median" : "up to the median", median_s - allowed_s});
    bar.segments.push_back(
        {"blocked", "more, up to the longest", longest_block(row).value_or(median_s) - median_s});
    bars.push_back(std::move(bar));
  }
  return state.add_bars("How long a save blocks the training, " + title, bars);
}

HtmlTable block_table(const std::string& title, const std::vector<SavingRuns>& rows, const PageState& state) {
  const Output& output = state.output;
  HtmlTable table("Saves of " + title,
                  {{"saved", Kind::words, ""},
                   {"blocked", Kind::number, "how long a save blocks the training: the median of all saves"},
                   {"longest", Kind::number, ""},
                   {"allowed", Kind::number, "by the ceiling of the tier that the save waits for"},
                   {"to fast", Kind::number, "until the fast tier has all of it"},
                   {"to durable", Kind::number, "until the slow tier has all of it"},
                   {"drain " + std::string(rate_unit(output)), Kind::number, ""},
                   {"of ceiling", Kind::number, "of the slow tier's"},
                   {"overlap", Kind::number, "the share of draining in which no save blocked the training"},
                   {"steps", Kind::number, "during a drain, against the others"},
                   {"skips", Kind::number, ""},
                   {"runs", Kind::number, ""},
                   {"records", Kind::number, ""}});
  for (const SavingRuns& row : rows) {
    const bool ceilings_valid = ceilings_hold(row.runs);
    const auto median = [&](const MetricInfo& metric) { return row.median_of(metric); };
    const auto allowed_s = allowed_block_s(row);
    const auto drain = median(kDrainRate);
    const auto share = median(kDrainOfCeiling);
    const auto overlap = median(kDrainOverlap);
    const auto inflation = median(kStepInflation);
    std::vector<Markup> cells;
    for (const std::string& cell :
         {row.name, seconds_of(row, kBlockTime), or_dash(longest_block(row), format_seconds),
          or_dash(allowed_s, format_seconds), seconds_of(row, kTimeToFast), seconds_of(row, kTimeToDurable),
          drain ? format_rate(*drain, output) : "-", share && ceilings_valid ? format_percent(*share) : "-",
          or_dash(overlap, format_percent), or_dash(inflation, format_ratio, output),
          format_number(row.sum(kSkips), output), std::to_string(row.runs.size())})
      cells.push_back(text(cell));
    std::vector<size_t> record_numbers;
    for (const Record* const record : row.runs) record_numbers.push_back(state.number_of(*record));
    std::sort(record_numbers.begin(), record_numbers.end());
    cells.push_back({record_ranges_html(record_numbers)});
    table.row(std::move(cells));
  }
  return table;
}

HtmlTable lost_table(const std::string& title, const std::vector<SavingRuns>& rows) {
  HtmlTable table("Work lost on average by a failure, " + title,
                  {{"saved", Kind::words, ""},
                   {"processes are killed", Kind::number, ""},
                   {"the node fails", Kind::number, "with its fast tier"},
                   {"power fails", Kind::number, "takes what is in memory alone"},
                   {"save every (Young)", Kind::number, "what loses least at the mean time between failures"},
                   {"(Daly)", Kind::number, ""}});
  for (const SavingRuns& row : rows)
    table.row({row.name, seconds_of(row, kLostWork.with("process")), seconds_of(row, kLostWork.with("node")),
               seconds_of(row, kLostWork.with("power")), seconds_of(row, kIntervalYoung),
               seconds_of(row, kIntervalDaly)});
  return table;
}

HtmlTable written_table(const SavingGroup& group, const Output& output) {
  HtmlTable table("Written in the first run, " + group.title,
                  {{"saved", Kind::words, ""},
                   {"tier", Kind::words, ""},
                   {"all", Kind::number, ""},
                   {"median " + std::string(rate_unit(output)), Kind::number, "of the intervals with any"},
                   {"highest", Kind::number, ""},
                   {"interval", Kind::number, ""}});
  for (const SavingRuns& arm : group.arms)
    for (const auto& [name, role] :
         {std::pair{kFastWritten, "burst_buffer"}, std::pair{kSlowWritten, "checkpoint"}}) {
      const auto series = arm.first().series.find(std::string(name));
      if (series == arm.first().series.end() || series->second.interval_s <= 0) continue;
      std::vector<double> rates;
      double total_bytes = 0;
      for (const double bytes : series->second.values) total_bytes += bytes;
      for (const double rate : series->second.rates())
        if (rate > 0) rates.push_back(rate);
      table.row({saved_how(arm.first(), arm.arm), role_name(arm.first(), role),
                 format_bytes(total_bytes, output), format_rate(median(rates), output),
                 format_rate(percentile(rates, 100), output), format_seconds(series->second.interval_s)});
    }
  return table;
}

std::string rows_html(const std::string& title, const std::vector<SavingRuns>& rows, const std::string& more,
                      PageState& state) {
  return "<div class=\"side-by-side\">\n" + block_bars(title, rows, state) +
         block_table(title, rows, state).html() + more + "</div>\n";
}

// The charts of all arms, next to each other and with the same time scale.
std::string charts_over_time(const SavingGroup& group, PageState& state) {
  double until_s = 0;
  for (const SavingRuns& arm : group.arms) until_s = std::max(until_s, saving_length_s(arm));
  std::string stacks;
  for (const SavingRuns& arm : group.arms) {
    SavingCharts charts = saving_charts(arm, until_s, state.tiers, state.output);
    if (charts.rates.x.empty()) continue;
    std::string stack;
    if (!charts.steps.x.empty()) stack += state.add_chart(std::move(charts.steps));
    stack += state.add_chart(std::move(charts.rates));
    if (!stack.empty()) stacks += "<div class=\"stack\">\n" + stack + "</div>\n";
  }
  const HtmlTable table = written_table(group, state.output);
  return table.empty() ? "" : "<div class=\"side-by-side\">\n" + stacks + table.html() + "</div>\n";
}

std::vector<SavingRuns> trainings(std::span<const Record> records) {
  std::vector<SavingRuns> rows;
  for (const TrainGroup& group : train_groups(records))
    for (const auto& [prefetch, record] : group.at)
      if (find_metric(*record, kBlockTime) != nullptr)
        rows.push_back({"",
                        {record},
                        fmt::format("{}, prefetch {}, {}", group.title, prefetch, saved_how(*record, ""))});
  return rows;
}

}  // namespace

std::string saving_section(std::span<const Record> records, PageState& state) {
  const std::vector<SavingGroup> groups = saving_groups(records);
  const std::vector<SavingRuns> trained = trainings(records);
  const std::vector<SavingRuns> save_runs = single_saves(records);
  if (groups.empty() && trained.empty() && save_runs.empty()) return "";
  std::string out = state.open_section(
      "checkpoints", "Checkpoints",
      "A save straight to the slow tier blocks the training until it has all data. Through a fast tier it "
      "blocks only until that has them, and they drain to the slow tier during the steps. Volatile: if power "
      "fails, the data of the fast tier are lost.",
      state.answers({groups.empty() ? "saving.held" : "saving.block", "saving.advice"}));
  for (size_t i = 0; i < groups.size(); ++i) {
    const std::string& title = groups[i].title;
    const std::vector<SavingRuns>& arms = groups[i].arms;
    out += part_html(
        i, group_anchor("checkpoints", i), title,
        rows_html(title, arms, lost_table(title, arms).html(), state) + charts_over_time(groups[i], state));
  }
  if (!save_runs.empty())
    out += part_html(0, "checkpoints-saves", "single saves", rows_html("single saves", save_runs, "", state));
  if (!trained.empty())
    out += part_html(0, "checkpoints-trainings", "trainings",
                     rows_html("trainings", trained, lost_table("trainings", trained).html(), state));
  return out + "</section>\n";
}

}  // namespace penstock::report
