// Checkpoints: how long either way of saving holds the training, and what both tiers do meanwhile.
#include <fmt/format.h>

#include <algorithm>

#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/saving_cells.hpp"
#include "results/record/statistics.hpp"
#include "results/report/bars.hpp"
#include "results/report/html.hpp"
#include "results/report/sections.hpp"

namespace penstock::report {
namespace {

using Kind = HtmlTable::Kind;

// What is spoken of in one row: an arm of a bench, or a training.
struct Row {
  std::string name;
  SavingRuns runs;
};

std::string seconds_of(const Row& row, std::string_view metric) {
  const auto value = middle_of(row.runs.runs, metric);
  return value ? format_seconds(*value) : "-";
}

double longest_block(const SavingRuns& runs) {
  return percentile(samples_of(runs.runs, "checkpoint_block_s"), 100);
}

std::string block_bars(const std::string& title, const std::vector<Row>& rows, PageState& state) {
  const bool ceilings = std::any_of(rows.begin(), rows.end(),
                                    [](const Row& row) { return allowed_block_s(row.runs).has_value(); });
  std::vector<Bar> bars;
  for (const Row& row : rows) {
    const double median_s = middle_of(row.runs.runs, "checkpoint_block_s").value_or(0);
    const double allowed_s = std::min(median_s, allowed_block_s(row.runs).value_or(0));
    Bar bar{row.name, {}};
    if (ceilings) bar.segments.push_back({"busy", "what its tier's ceiling allows", allowed_s});
    bar.segments.push_back(
        {"starved", ceilings ? "more, up to the median" : "up to the median", median_s - allowed_s});
    bar.segments.push_back({"blocked", "more, up to the longest", longest_block(row.runs) - median_s});
    bars.push_back(std::move(bar));
  }
  return state.place_bars("How long a save holds the training, " + title, bars);
}

HtmlTable block_table(const std::string& title, const std::vector<Row>& rows, const PageState& state) {
  const Output& output = state.output;
  HtmlTable table("Saves of " + title,
                  {{"saved", Kind::words, ""},
                   {"held", Kind::number, "how long a save holds the training: the median of all saves"},
                   {"longest", Kind::number, ""},
                   {"allowed", Kind::number, "by the ceiling of the tier that holds it"},
                   {"to fast", Kind::number, "until the fast tier has all of it"},
                   {"to durable", Kind::number, "until the slow tier has all of it"},
                   {"drain " + std::string(rate_unit(output)), Kind::number, ""},
                   {"of ceiling", Kind::number, "of the slow tier's"},
                   {"overlap", Kind::number, "the share of draining in which no save held the training"},
                   {"steps", Kind::number, "during a drain, against the others"},
                   {"skips", Kind::number, ""},
                   {"runs", Kind::number, ""},
                   {"records", Kind::number, ""}});
  for (const Row& row : rows) {
    const bool hold = ceilings_hold(row.runs.runs);
    const auto middle = [&](std::string_view metric) { return middle_of(row.runs.runs, metric); };
    const auto allowed = allowed_block_s(row.runs);
    const auto drain = middle("drain_bytes_per_s");
    const auto share = middle("drain_of_ceiling");
    const auto overlap = middle("drain_overlap");
    const auto inflation = middle("step_inflation");
    double skips = 0;
    for (const double one : samples_of(row.runs.runs, "checkpoint_skips")) skips += one;
    std::vector<Markup> cells;
    for (const std::string& cell :
         {row.name, seconds_of(row, "checkpoint_block_s"), format_seconds(longest_block(row.runs)),
          allowed ? format_seconds(*allowed) : "-", seconds_of(row, "checkpoint_fast_s"),
          seconds_of(row, "checkpoint_durable_s"), drain ? format_rate(*drain, output) : "-",
          share && hold ? format_percent(*share) : "-", overlap ? format_percent(*overlap) : "-",
          inflation ? format_ratio(*inflation) : "-", format_number(skips),
          std::to_string(row.runs.runs.size())})
      cells.push_back(text(cell));
    std::vector<std::size_t> numbers;
    for (const Record* const record : row.runs.runs) numbers.push_back(state.number_of(*record));
    std::sort(numbers.begin(), numbers.end());
    cells.push_back({record_ranges_html(numbers)});
    table.row(std::move(cells));
  }
  return table;
}

HtmlTable lost_table(const std::string& title, const std::vector<Row>& rows) {
  HtmlTable table("Work lost on average by a failure, " + title,
                  {{"saved", Kind::words, ""},
                   {"processes end", Kind::number, ""},
                   {"the node is lost", Kind::number, "with its fast tier"},
                   {"power fails", Kind::number, "takes what is in memory alone"},
                   {"save every (Young)", Kind::number, "what loses least at the mean time between failures"},
                   {"(Daly)", Kind::number, ""}});
  for (const Row& row : rows)
    table.row({row.name, seconds_of(row, "lost_work_s.process"), seconds_of(row, "lost_work_s.node"),
               seconds_of(row, "lost_work_s.power"), seconds_of(row, "checkpoint_interval_s.young"),
               seconds_of(row, "checkpoint_interval_s.daly")});
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
         {std::pair{"fast_bytes_written", "burst_buffer"}, std::pair{"slow_bytes_written", "checkpoint"}}) {
      const auto series = arm.first().series.find(name);
      if (series == arm.first().series.end() || series->second.interval_s <= 0) continue;
      std::vector<double> rates;
      double all = 0;
      for (const double bytes : series->second.values) {
        all += bytes;
        if (bytes > 0) rates.push_back(bytes / series->second.interval_s);
      }
      table.row({saved_how(arm.first(), arm.arm), role_name(arm.first(), role), format_bytes(all, output),
                 format_rate(median(rates), output), format_rate(percentile(rates, 100), output),
                 format_seconds(series->second.interval_s)});
    }
  return table;
}

std::string rows_html(const std::string& title, const std::vector<Row>& rows, PageState& state) {
  return "<div class=\"side-by-side\">\n" + block_bars(title, rows, state) +
         block_table(title, rows, state).html() + lost_table(title, rows).html() + "</div>\n";
}

// The arms next to each other, on one scale of time.
std::string over_time(const SavingGroup& group, PageState& state) {
  double until_s = 0;
  for (const SavingRuns& arm : group.arms) until_s = std::max(until_s, saving_length_s(arm));
  std::string stacks;
  for (const SavingRuns& arm : group.arms) {
    SavingCharts charts = saving_charts(arm, until_s, state.tiers, state.output);
    if (charts.rates.x.empty()) continue;
    std::string stack;
    if (!charts.steps.x.empty()) stack += state.place(std::move(charts.steps));
    stack += state.place(std::move(charts.rates));
    if (!stack.empty()) stacks += "<div class=\"stack\">\n" + stack + "</div>\n";
  }
  const HtmlTable table = written_table(group, state.output);
  return table.empty() ? "" : "<div class=\"side-by-side\">\n" + stacks + table.html() + "</div>\n";
}

std::vector<Row> trainings(const std::vector<Record>& records) {
  std::vector<Row> rows;
  for (const TrainGroup& group : train_groups(records))
    for (const auto& [prefetch, record] : group.at)
      if (find_metric(*record, "checkpoint_block_s") != nullptr)
        rows.push_back({fmt::format("{}, prefetch {}, {}", group.title, prefetch, saved_how(*record, "")),
                        {"", {record}}});
  return rows;
}

}  // namespace

std::string saving_section(const std::vector<Record>& records, PageState& state) {
  const std::vector<SavingGroup> groups = saving_groups(records);
  const std::vector<Row> trained = trainings(records);
  if (groups.empty() && trained.empty()) return "";
  std::string out = state.open_section(
      "checkpoints", "Checkpoints",
      "A save straight to the slow tier holds the training until all is there. Through a fast tier it holds "
      "it until that has all, and the rest drains during the steps. Volatile: a loss of power takes what "
      "the fast tier holds.",
      state.answers({groups.empty() ? "saving.held" : "saving.block", "saving.advice"}));
  for (std::size_t i = 0; i < groups.size(); ++i) {
    std::vector<Row> rows;
    for (const SavingRuns& arm : groups[i].arms) rows.push_back({saved_how(arm.first(), arm.arm), arm});
    out += part_html(i, group_anchor("checkpoints", i), groups[i].title,
                     rows_html(groups[i].title, rows, state) + over_time(groups[i], state));
  }
  if (!trained.empty())
    out += part_html(0, "checkpoints-trainings", "trainings", rows_html("trainings", trained, state));
  return out + "</section>\n";
}

}  // namespace penstock::report
