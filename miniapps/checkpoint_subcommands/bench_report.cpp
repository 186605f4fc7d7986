#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint_subcommands/bench_setup.hpp"
#include "miniapps/checkpoint_subcommands/view/bench_metrics.hpp"
#include "miniapps/checkpoint_subcommands/view/saving_cells.hpp"
#include "results/cells/cells.hpp"
#include "results/cells/verdicts.hpp"

namespace penstock {
namespace {

constexpr double kNoisyCalibration = 0.10;  // a larger spread of the calibration is reported

// The records of an arm; none if the command was stopped before the arm ran.
SavingRuns runs_of(std::string_view arm, std::span<const Record> records) {
  SavingRuns runs{std::string(arm), {}};
  for (const Record& record : records)
    if (record.parameters.value("arm", "") == runs.arm) runs.runs.push_back(&record);
  return runs;
}

std::optional<double> largest_sample(const SavingRuns& runs, const MetricInfo& metric) {
  const std::vector<double> samples = samples_of(runs.runs, metric);
  if (samples.empty()) return std::nullopt;
  return *std::max_element(samples.begin(), samples.end());
}

std::string heading(const BenchSetup& setup, int ranks, const Output& output) {
  const std::string step = format_seconds(std::chrono::duration<double>(setup.step_time).count());
  const std::string bytes = format_bytes(double(setup.payload.bytes), output);
  std::string text = fmt::format(
      "{}{}: a checkpoint every {} of {} steps ({} each) to {}{}\n",
      parse_size(setup.payload.name).ok() ? bytes : fmt::format("{} ({})", setup.payload.name, bytes),
      ranks > 1 ? fmt::format(" over {} ranks", ranks) : "", setup.save_every, setup.steps, step,
      printable(setup.slow().name),
      setup.fast() == nullptr ? ""
                              : fmt::format(" through the burst buffer {}{}", printable(setup.fast()->name),
                                            is_volatile(*setup.fast()) ? " (volatile)" : ""));
  if (!setup.burner) return text + "\n";
  text += fmt::format("a step keeps {:g} CPU{} busy for {} when nothing else runs\n", setup.processors,
                      setup.processors == 1 ? "" : "s", step);
  if (const double spread = setup.burner->spread(); spread > kNoisyCalibration)
    text += fmt::format("other programs ran during its calibration: a CPU was up to {} slower\n",
                        format_percent(spread));
  return text + "\n";
}

std::string tables(const BenchSetup& setup, std::span<const Record> records, const Output& output) {
  Table table({{"saved", Align::left},
               {"block"},
               {"longest"},
               {"allowed"},
               {"to fast"},
               {"to durable"},
               {fmt::format("drain {}", rate_unit(output))},
               {"of ceiling"},
               {"overlap"},
               {"step inflation"},
               {"skips"}});
  Table lost({{"average lost work if", Align::left},
              {"processes are killed"},
              {"the node fails"},
              {"power fails"},
              {"save every (Young)"},
              {"(Daly)"}});
  for (const std::string_view arm : setup.arms) {
    const SavingRuns runs = runs_of(arm, records);
    const auto median_of = [&](const auto& metric) { return runs.median_of(metric); };
    const auto time_text = [&](const auto& metric) { return or_dash(median_of(metric), format_seconds); };
    const auto allowed_s = runs.runs.empty() ? std::nullopt : allowed_block_s(runs);
    table.row(
        {runs.arm, time_text(saving_metrics::kBlockTime),
         or_dash(largest_sample(runs, saving_metrics::kBlockTime), format_seconds),
         or_dash(allowed_s, format_seconds), time_text(saving_metrics::kTimeToFast),
         time_text(bench_metrics::kTimeToDurable),
         or_dash(median_of(saving_metrics::kDrainRate),
                 [&](double rate) { return format_rate(rate, output); }),
         ceilings_hold(runs.runs) ? or_dash(median_of(saving_metrics::kDrainOfCeiling), format_percent) : "-",
         or_dash(median_of(saving_metrics::kDrainOverlap), format_percent),
         or_dash(median_of(saving_metrics::kStepInflation), format_ratio, output),
         or_dash(median_of(saving_metrics::kSkips), format_number, output)});
    lost.row({runs.arm, time_text(saving_metrics::kLostWork.with("process")),
              time_text(saving_metrics::kLostWork.with("node")),
              time_text(saving_metrics::kLostWork.with("power")), time_text(saving_metrics::kIntervalYoung),
              time_text(saving_metrics::kIntervalDaly)});
  }
  return table.text() + "\n" + lost.text();
}

// Returns the sentences about the records, without those that only repeat the tables.
std::string findings(std::span<const Record> records, const Output& output) {
  constexpr std::array<std::string_view, 3> kRepeatedKinds{"saving.drain", "saving.lost", "saving.advice"};
  std::string text;
  for (const Sentence& sentence : sentences(records, output))
    if (std::find(kRepeatedKinds.begin(), kRepeatedKinds.end(), sentence.kind) == kRepeatedKinds.end())
      text += sentence.text + "\n";
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string bench_report(const BenchSetup& setup, int ranks, std::span<const Record> records,
                         const Output& output) {
  return heading(setup, ranks, output) + tables(setup, records, output) + findings(records, output);
}

}  // namespace penstock
