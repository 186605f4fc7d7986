#include "results/sweep/outcome.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <set>
#include <utility>

#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/headlines.hpp"
#include "results/record/json_members.hpp"

namespace penstock {
namespace {

// The least number of turns for a 95% confidence interval of a median: with fewer turns, even the interval
// from the smallest to the largest value has less than 95%.
constexpr size_t kLeastTurns = 6;

// Titles that distinguish the records of one run.
std::vector<std::string> record_titles(std::span<const StoredRecord> records) {
  std::set<std::string> names;
  for (const StoredRecord& stored : records)
    for (const auto& [name, value] : stored.record.parameters.items()) names.insert(name);
  std::vector<std::vector<std::string>> rows;
  for (const StoredRecord& stored : records) {
    std::vector<std::string>& row = rows.emplace_back();
    row.push_back(tier_name(stored.record));
    for (const std::string& name : names)
      if (name != "tier") row.push_back(fmt::format("{} {}", name, parameter_text(stored.record, name)));
  }
  return titles_of(rows);
}

// The values of one arm: for each record (by its label) one value of its first metric for each round.
using Figures = std::map<std::string, std::map<uint64_t, double>>;  // label -> round -> value

Figures figures_by_turn(std::span<const SweepTurn* const> turns, std::string_view arm) {
  Figures figures;
  for (const SweepTurn* turn : turns)
    for (const SweepRun& run : turn->runs) {
      if (run.arm != arm) continue;
      // A record's figures follow one another, that of its first metric first.
      const std::string* label = nullptr;
      for (const SweepFigure& figure : run.figures) {
        if (label != nullptr && *label == figure.label) continue;
        label = &figure.label;
        auto& values = figures[figure.label];
        if (figure.value) values[turn->round] = *figure.value;
      }
    }
  return figures;
}

bool has_narrow_interval(const std::vector<double>& values, double relative_width) {
  const std::optional<Interval> interval = median_interval(values);
  return values.size() >= kLeastTurns && interval &&
         interval->high - interval->low <= relative_width * std::abs(median(values));
}

std::string value_text(double value, const SweepFigure& figure, const Output& output) {
  if (figure.unit == "B/s") return format_rate(value, output);
  if (figure.unit == "s") return format_seconds(value);
  return format_number(value, output);
}

std::string metric_text(const SweepFigure& figure, const Output& output) {
  if (figure.metric.empty()) return "-";
  if (figure.unit == "B/s") return fmt::format("{} ({})", figure.metric, rate_unit(output));
  return figure.metric;
}

}  // namespace

std::vector<SweepFigure> figures_of(std::span<const StoredRecord> records, std::string_view metric,
                                    std::span<const MetricInfo> table) {
  std::vector<SweepFigure> figures;
  const std::vector<std::string> titles = record_titles(records);
  for (size_t i = 0; i < records.size(); ++i) {
    const Record& record = records[i].record;
    const std::vector<std::string> names =
        metric.empty() ? shown_metrics(record, table) : std::vector<std::string>{std::string(metric)};
    for (const std::string& name : names) {
      SweepFigure& figure = figures.emplace_back();
      figure.label = titles[i];
      figure.metric = name;
      figure.verdict = record.verdict;
      figure.reason = record.reason;
      const Metric* const found = find_metric(record, figure.metric);
      if (found == nullptr) continue;
      figure.unit = found->unit;
      figure.better = found->better;
      if (!is_usable(record) || !std::isfinite(found->value())) continue;
      figure.value = found->value();
      const Metric* const rate = throughput(record);
      if (names.size() == 1 && rate != nullptr && rate != found && rate->unit == "B/s")
        figure.bytes_per_s = rate->value();
    }
  }
  return figures;
}

std::vector<const SweepTurn*> turns_of(const SweepHistory& history, const SweepCell& cell) {
  std::vector<const SweepTurn*> turns;
  for (const SweepTurn& turn : history.turns)
    if (turn.cell == cell.key) turns.push_back(&turn);
  std::sort(turns.begin(), turns.end(),
            [](const SweepTurn* one, const SweepTurn* other) { return one->round < other->round; });
  return turns;
}

bool is_settled(const SweepSpec& spec, std::span<const SweepTurn* const> turns) {
  if (spec.until_interval <= 0 || turns.size() < kLeastTurns) return false;
  const Figures first_figures = figures_by_turn(turns, spec.arms.empty() ? "" : spec.arms.front().name);
  if (first_figures.empty()) return false;
  if (spec.arms.empty())
    return std::all_of(first_figures.begin(), first_figures.end(), [&](const auto& figure) {
      std::vector<double> values;
      for (const auto& [round, value] : figure.second) values.push_back(value);
      return has_narrow_interval(values, spec.until_interval);
    });
  for (size_t arm = 1; arm < spec.arms.size(); ++arm) {
    const Figures other_figures = figures_by_turn(turns, spec.arms[arm].name);
    for (const auto& [label, base] : first_figures) {
      std::vector<double> ratios;
      if (const auto same = other_figures.find(label); same != other_figures.end())
        for (const auto& [round, value] : same->second)
          if (const auto partner = base.find(round); partner != base.end() && partner->second != 0)
            ratios.push_back(value / partner->second);
      if (!has_narrow_interval(ratios, spec.until_interval)) return false;
    }
  }
  return true;
}

std::vector<SweepRow> sweep_rows(const SweepSpec& spec, std::span<const SweepCell> cells,
                                 const SweepHistory& history) {
  std::vector<std::string> arms;
  for (const SweepArm& arm : spec.arms) arms.push_back(arm.name);
  if (arms.empty()) arms.emplace_back();
  std::vector<SweepRow> rows;
  for (const SweepCell& cell : cells) {
    const std::vector<const SweepTurn*> turns = turns_of(history, cell);
    for (const std::string& arm : arms) {
      const size_t begin = rows.size();
      for (const SweepTurn* turn : turns)
        for (const SweepRun& run : turn->runs)
          for (const SweepFigure& figure : run.figures) {
            if (run.arm != arm) continue;
            auto row = std::find_if(rows.begin() + ptrdiff_t(begin), rows.end(), [&](const SweepRow& known) {
              // A run that failed has no metric; its verdict is that of any metric's row.
              return known.figure.label == figure.label &&
                     (known.figure.metric == figure.metric || known.figure.metric.empty() ||
                      figure.metric.empty());
            });
            if (row == rows.end()) {
              row = rows.emplace(rows.end());
              row->cell = &cell;
              row->arm = arm;
              row->figure = figure;
            }
            ++row->turns;
            if (figure.value) row->values.push_back(*figure.value);
            if (figure.bytes_per_s) row->bytes_per_s.push_back(*figure.bytes_per_s);
            if (row->figure.unit.empty()) row->figure = figure;
            add_verdict(row->verdict, row->reason, figure.verdict, figure.reason);
          }
    }
  }
  for (SweepRow& row : rows) row.interval = median_interval(row.values);
  return rows;
}

std::string sweep_table(std::span<const SweepRow> rows, const Output& output) {
  const bool arms =
      std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return !row.arm.empty(); });
  std::vector<Table::Column> columns{{"cell", Align::left}};
  if (arms) columns.push_back({"arm", Align::left});
  const bool rates =
      std::any_of(rows.begin(), rows.end(), [](const SweepRow& row) { return !row.bytes_per_s.empty(); });
  columns.insert(columns.end(), {{"repeats"}, {"metric", Align::left}, {"median"}, {"95% interval"}});
  if (rates) columns.push_back({std::string(rate_unit(output))});
  columns.push_back({"verdict", Align::left});
  Table table(columns);
  for (const SweepRow& row : rows) {
    std::vector<std::string> texts{row.cell->title +
                                   (row.figure.label.empty() ? "" : fmt::format(" ({})", row.figure.label))};
    if (arms) texts.push_back(row.arm);
    texts.push_back(std::to_string(row.turns));
    texts.push_back(metric_text(row.figure, output));
    texts.push_back(row.values.empty() ? "-" : value_text(median(row.values), row.figure, output));
    texts.push_back(row.interval ? fmt::format("{} .. {}", value_text(row.interval->low, row.figure, output),
                                               value_text(row.interval->high, row.figure, output))
                                 : "-");
    if (rates) texts.push_back(row.bytes_per_s.empty() ? "-" : format_rate(median(row.bytes_per_s), output));
    texts.emplace_back(verdict_name(row.verdict));
    table.row(std::move(texts));
  }
  return table.text();
}

std::string sweep_row_line(const SweepRow& row) {
  Json json{{"kind", "cell"}, {"cell", row.cell->key}, {"title", row.cell->title}};
  if (!row.arm.empty()) json["arm"] = row.arm;
  if (!row.figure.label.empty()) json["what"] = row.figure.label;
  json["repeats"] = row.turns;
  json["metric"] = row.figure.metric;
  json["unit"] = row.figure.unit;
  json["median"] = row.values.empty() ? Json() : Json(median(row.values));
  json["interval"] = row.interval ? Json::array({row.interval->low, row.interval->high}) : Json();
  json["values"] = row.values;
  if (!row.bytes_per_s.empty()) json["throughput_bytes_per_s"] = median(row.bytes_per_s);
  json["verdict"] = verdict_name(row.verdict);
  json["reason"] = row.reason;
  return one_line(json);
}

int sweep_exit_code(const SweepHistory& history) {
  int worst_code = 0;
  for (const SweepTurn& turn : history.turns)
    for (const SweepRun& run : turn.runs) {
      // Other exit codes show that the run did not end normally. Then it counts as failed even if it has a
      // record.
      if (run.exit_code != 0 && run.exit_code != 1 && run.exit_code != verdict_exit_code(Verdict::skipped))
        return 1;
      for (const SweepFigure& figure : run.figures) {
        const int code = verdict_exit_code(figure.verdict);
        if (code == 1) return 1;
        worst_code = std::max(worst_code, code);
      }
    }
  return worst_code;
}

SweepTimes::SweepTimes(const SweepHistory& history) {
  for (const SweepTurn& turn : history.turns) add_seconds(turn);
  median_of_all_ = median(all_seconds_);
}

void SweepTimes::add(const SweepTurn& turn) {
  add_seconds(turn);
  median_of_all_ = median(all_seconds_);
}

void SweepTimes::add_seconds(const SweepTurn& turn) {
  double seconds = 0;
  for (const SweepRun& run : turn.runs) seconds += run.seconds;
  cell_seconds_[turn.cell].push_back(seconds);
  all_seconds_.push_back(seconds);
}

TimeRange SweepTimes::turn(const SweepCell& cell) const {
  constexpr double kFaster = 0.85;
  constexpr double kSlower = 1.2;
  const auto around = [](double seconds) { return TimeRange{kFaster * seconds, kSlower * seconds}; };
  if (const auto times = cell_seconds_.find(cell.key); times != cell_seconds_.end())
    return around(median(times->second));
  const TimeRange of_all = around(median_of_all_);
  return {std::max(of_all.low_s, cell.expected.low_s), std::max(of_all.high_s, cell.expected.high_s)};
}

namespace {

// The time that the options ask for: each repeat with each number of threads.
double asked_seconds(const Options& options) {
  double measured_s = 0;
  double repetitions = 1;
  for (const OptionWord& option : options.resolved()) {
    const auto seconds = [&] {
      const auto duration = parse_duration(option.value);
      return duration.ok() ? std::chrono::duration<double>(*duration).count() : 0.0;
    };
    if (option.key == "min-time" || option.key == "duration") measured_s = std::max(measured_s, seconds());
    if (option.key == "repeat")
      if (const auto repeats = parse_real(option.value); repeats.ok()) repetitions *= std::max(1.0, *repeats);
    if (option.key == "threads")
      repetitions *= 1.0 + double(std::count(option.value.begin(), option.value.end(), ','));
  }
  return measured_s * repetitions;
}

}  // namespace

TimeRange run_time(const CommandInfo& command, std::span<const std::string> arguments,
                   const CommandContext& context) {
  constexpr TimeRange kProcessStart{0.05, 0.3};
  constexpr double kMostOfAsked = 4;    // with warm-up, baseline and ceiling
  constexpr double kUnknownMost_s = 5;  // beyond that, if nothing else is known
  const Result<CommandLine> line = parse_command_line(command, arguments, {});
  if (!line.ok()) return kProcessStart;
  if (command.expected_time != nullptr) {
    CommandContext of_run{.options = line->options,
                          .positionals = line->arguments,
                          .argv = context.argv,
                          .command = command.name,
                          .output = {},
                          .seed = context.seed,
                          .communicator = context.communicator,
                          .metrics = command.metrics,
                          .findings = command.findings,
                          .named_tiers = context.named_tiers};
    if (const Result<TimeRange> expected = command.expected_time(of_run); expected.ok())
      return *expected + kProcessStart;
  }
  const double asked_s = asked_seconds(line->options);
  return TimeRange{asked_s, kMostOfAsked * asked_s + kUnknownMost_s} + kProcessStart;
}

std::string rough_duration(double seconds) {
  if (seconds < 100) return fmt::format("{:.0f} s", std::ceil(seconds));
  const auto minutes = uint64_t(std::ceil(seconds / 60));
  if (minutes < 100) return fmt::format("{} min", minutes);
  return fmt::format("{} h {} min", minutes / 60, minutes % 60);
}

}  // namespace penstock
