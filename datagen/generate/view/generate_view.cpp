// How the records of `generate` are shown: the rate at which a tier took the generated data, against threads.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "datagen/generate/generate_metrics.hpp"
#include "io_backends/core/cli/table.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/record_view.hpp"
#include "results/record/statistics.hpp"
#include "results/report/charts.hpp"
#include "results/report/page_state.hpp"

namespace penstock {
namespace {

using namespace generate_metrics;
using report::HtmlTable;
using Kind = HtmlTable::Kind;

bool is_generation(const Record& record) {
  return record.command == "generate" && is_usable(record) && find_metric(record, kPayloadRate) != nullptr;
}

// "imagenet to disk"
std::string generation_text(const Record& record) {
  const std::string recipe = parameter_text(record, "recipe");
  return (recipe.empty() ? "data" : recipe) + " to " + tier_name(record);
}

std::string threads_of_generation(const Record& record) {
  const auto ranks = whole_number(record, "ranks", 2);
  return (ranks ? fmt::format("{} ranks of ", *ranks) : "") + threads_label(record);
}

// Records of the same recipe, tier and host by threads, the fastest of each number.
using RecordsByThreads = std::map<uint64_t, const Record*>;

std::vector<RecordsByThreads> generation_curves(std::span<const Record> records) {
  std::vector<RecordsByThreads> curves;
  for (const RecordList& found : grouped(records, [](const Record& record) {
         return is_generation(record) && whole_number(record, "threads", 1)
                    ? generation_text(record) + "|" + environment_text(record, "host") + "|" +
                          parameter_text(record, "ranks") + "|" + label_text(record)
                    : "";
       })) {
    RecordsByThreads curve;
    for (const Record* const record : found) {
      const Record*& best = curve[*whole_number(*record, "threads", 1)];
      if (best == nullptr || *metric_value(*record, kPayloadRate) > *metric_value(*best, kPayloadRate))
        best = record;
    }
    curves.push_back(std::move(curve));
  }
  return curves;
}

const Record* fastest_generation(std::span<const Record> records) {
  const Record* fastest = nullptr;
  for (const Record& record : records)
    if (is_generation(record) &&
        (fastest == nullptr || *metric_value(record, kPayloadRate) > *metric_value(*fastest, kPayloadRate)))
      fastest = &record;
  return fastest;
}

std::string rate_text_of(const Record& record, const Output& output) {
  return fmt::format("{} {}", format_rate(*metric_value(record, kPayloadRate), output), rate_unit(output));
}

void describe_generations(std::span<const Record> records, const Output& output, std::vector<Sentence>& out) {
  if (const Record* const fastest = fastest_generation(records))
    out.push_back({Tone::finding, "generate",
                   fmt::format("Generating {} reached {} with {}.", generation_text(*fastest),
                               rate_text_of(*fastest, output), threads_of_generation(*fastest)),
                   "generating"});
}

std::vector<std::string> generate_bottom_line(std::span<const Record> records, const Output& output) {
  const Record* const fastest = fastest_generation(records);
  if (fastest == nullptr) return {};
  const uint64_t threads = whole_number(*fastest, "threads", 1).value_or(1);
  return {
      fmt::format("The rate alone does not show what limits generating {}.", generation_text(*fastest)),
      fmt::format("It reached {} with {}.", rate_text_of(*fastest, output), threads_of_generation(*fastest)),
      fmt::format(
          "Generate into another folder with --threads {}: if the rate does not rise, the tier or the "
          "processors limit.",
          2 * threads)};
}

std::vector<std::string> no_tiles(std::span<const Record>, report::PageState&) {
  return {};
}

HtmlTable generate_table(std::span<const Record> records, const report::PageState& state) {
  const Output& output = state.output;
  HtmlTable table("Generated data",
                  {{"data and tier", Kind::words},
                   {"threads", Kind::words},
                   {"samples"},
                   {std::string(rate_unit(output)), Kind::number, "of all samples of the run"},
                   {"samples/s"},
                   {"spread", Kind::number, "by how much several runs differ: (max - min) / median"},
                   {"time"},
                   {"peak memory", Kind::number, "of the rank that used most"},
                   {"record"}});
  for (const Record& record : records) {
    if (!is_generation(record)) continue;
    const Metric& rate = *find_metric(record, kPayloadRate);
    const auto memory = metric_value(record, shared_metrics::kPeakMemory);
    table.row({report::text(generation_text(record)), report::text(threads_of_generation(record)),
               report::text(parameter_text(record, "samples")),
               report::text(format_rate(rate.value(), output)),
               report::text(or_dash(metric_value(record, kSampleRate), format_number, output)),
               report::text(rate.samples.size() > 1 ? format_percent(spread(rate.samples)) : "-"),
               report::text(or_dash(metric_value(record, shared_metrics::kWall), format_seconds)),
               report::text(memory ? format_bytes(*memory, output) : "-"), state.record_link(record)});
  }
  return table;
}

report::Chart generate_chart(const std::vector<RecordsByThreads>& curves, const Output& output) {
  report::Chart chart;
  chart.title = "Generating against threads";
  chart.summary = "The rate of generating with each number of threads; the table next to it has the numbers";
  chart.x_label = "threads";
  chart.y_label = rate_unit(output);
  chart.x_is_log2 = true;
  std::set<double> counts;
  for (const RecordsByThreads& curve : curves)
    for (const auto& [threads, record] : curve) counts.insert(double(threads));
  if (counts.size() < 2) return chart;
  chart.x.assign(counts.begin(), counts.end());
  for (const RecordsByThreads& curve : curves) {
    const Record& any = *curve.begin()->second;
    std::string name = generation_text(any);
    if (const std::string labels = label_text(any); !labels.empty()) name += ", " + labels;
    report::ChartSeries series{name, chart.series.size(), report::Stroke::solid, true, {}, {}, {}};
    for (const double x : chart.x) {
      const auto at = curve.find(uint64_t(x));
      series.y.push_back(at == curve.end() ? std::nullopt
                                           : std::optional(*metric_value(*at->second, kPayloadRate) /
                                                           report::chart_unit(output)));
    }
    chart.series.push_back(std::move(series));
  }
  return chart;
}

std::string generate_section(std::span<const Record> records, report::PageState& state) {
  const HtmlTable table = generate_table(records, state);
  if (table.empty()) return "";
  return state.open_section("generating", "Generating data",
                            "How fast data were made, encoded and written to the tier.",
                            state.answers({"generate"})) +
         state.add_chart_with_table(generate_chart(generation_curves(records), state.output), table) +
         "</section>\n";
}

std::vector<std::string> generate_names(ShownRecords records) {
  std::vector<std::string> names;
  for (const Record* const record : records)
    names.push_back("generating " + generation_text(*record) + " with " + threads_of_generation(*record));
  return names;
}

std::vector<std::string> generate_label(const Record& record) {
  return {parameter_text(record, "recipe"), threads_of_generation(record)};
}

void add_no_superseded(std::span<const Record>, std::set<const Record*>&) {}

}  // namespace

extern const RecordView view_generate;
const RecordView view_generate{.name = "generate",
                               .order = 5,
                               .topic = "generating",
                               .has_row = is_generation,
                               .add_superseded = add_no_superseded,
                               .names = generate_names,
                               .labels = generate_label,
                               .describe = describe_generations,
                               .bottom_line = generate_bottom_line,
                               .tiles = no_tiles,
                               .section = generate_section};

}  // namespace penstock
