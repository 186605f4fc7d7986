#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "datagen/commands/command_output.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint_subcommands/bench_setup.hpp"
#include "results/cells/saving_cells.hpp"
#include "results/cells/verdicts.hpp"

namespace penstock {
namespace {

constexpr double kUnquiet = 0.10;  // looks at what a processor gets done that lie further apart are said

template <class Format>
std::string cell(const std::optional<double>& value, Format format) {
  return value ? format(*value) : std::string("-");
}

// What was measured of an arm; none of it where it failed.
SavingRuns runs_of(SavingArm arm, std::span<const Record> records) {
  SavingRuns runs{std::string(arm_name(arm)), {}};
  for (const Record& record : records)
    if (record.parameters.value("arm", "") == runs.arm) runs.runs.push_back(&record);
  return runs;
}

std::optional<double> most_of(const SavingRuns& runs, std::string_view metric) {
  const std::vector<double> all = samples_of(runs.runs, metric);
  if (all.empty()) return std::nullopt;
  return *std::max_element(all.begin(), all.end());
}

std::string heading(const BenchSetup& setup, int ranks, const Output& output) {
  const std::string step = format_seconds(std::chrono::duration<double>(setup.schedule.step).count());
  std::string text =
      fmt::format("{} ({}{}), every {} of {} steps of {}; {}{}\n", setup.payload.name,
                  format_bytes(static_cast<double>(setup.payload.bytes), output),
                  ranks > 1 ? fmt::format(" over {} ranks", ranks) : "", setup.schedule.every,
                  setup.schedule.steps, step, printable(setup.slow().name),
                  setup.fast() == nullptr ? ""
                                          : fmt::format(" behind {}{}", printable(setup.fast()->name),
                                                        forgets(*setup.fast()) ? " (volatile)" : ""));
  if (!setup.burner) return text + "\n";
  text += fmt::format("a step is work for {:g} processor{} that takes {} when nothing else goes on\n",
                      setup.processors, setup.processors == 1 ? "" : "s", step);
  if (const double apart = setup.burner->pace().spread; apart > kUnquiet)
    text +=
        fmt::format("it was calibrated while other work went on: a processor got up to {} less done then\n",
                    format_percent(apart));
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
  Table lost({{"lost on average when", Align::left},
              {"processes end"},
              {"the node is lost"},
              {"power fails"},
              {"save every (Young)"},
              {"(Daly)"}});
  for (const SavingArm arm : setup.arms) {
    const SavingRuns runs = runs_of(arm, records);
    const auto of = [&](const char* metric) { return middle_of(runs.runs, metric); };
    const auto time = [&](const char* metric) { return cell(of(metric), format_seconds); };
    const auto allowed = runs.runs.empty() ? std::nullopt : allowed_block_s(runs);
    table.row({runs.arm, time("checkpoint_block_s"),
               cell(most_of(runs, "checkpoint_block_s"), format_seconds), cell(allowed, format_seconds),
               time("checkpoint_fast_s"), time("checkpoint_durable_s"),
               cell(of("drain_bytes_per_s"), [&](double rate) { return format_rate(rate, output); }),
               ceilings_hold(runs.runs) ? cell(of("drain_of_ceiling"), format_percent) : "-",
               cell(of("drain_overlap"), format_percent), cell(of("step_inflation"), format_ratio),
               cell(of("checkpoint_skips"), format_number)});
    lost.row({runs.arm, time("lost_work_s.process"), time("lost_work_s.node"), time("lost_work_s.power"),
              time("checkpoint_interval_s.young"), time("checkpoint_interval_s.daly")});
  }
  return table.text() + "\n" + lost.text();
}

// What the tables say already is left out.
std::string findings(std::span<const Record> records, const Output& output) {
  constexpr std::array<std::string_view, 3> kInTables{"saving.drain", "saving.lost", "saving.advice"};
  std::string text;
  for (const Sentence& sentence : sentences(records, output))
    if (std::find(kInTables.begin(), kInTables.end(), sentence.kind) == kInTables.end())
      text += sentence.text + "\n";
  return text.empty() ? text : "\n" + text;
}

}  // namespace

std::string bench_report(const BenchSetup& setup, int ranks, std::span<const Record> records,
                         const Output& output) {
  return heading(setup, ranks, output) + tables(setup, records, output) + findings(records, output);
}

}  // namespace penstock
