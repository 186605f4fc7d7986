#include "miniapps/checkpoint_subcommands/save_report.hpp"

#include <fmt/format.h>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/table.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/checkpoint_subcommands/subcommands.hpp"
#include "results/cells/cells.hpp"
#include "results/record/environment.hpp"

namespace penstock {
namespace {

std::optional<double> rate_of(const CheckpointTimes& times, const std::optional<double>& seconds) {
  if (!seconds || *seconds <= 0) return {};
  return double(times.bytes) / *seconds;
}

Json or_null(const std::optional<double>& value) {
  return value ? Json(*value) : Json();
}

Json to_json(const SaveOutcome& outcome, const Tier& slow, const Tier* fast, const CommandContext& context) {
  const CheckpointTimes& times = outcome.times;
  return {{"kind", "save"},
          {"run", outcome.run},
          {"step", times.id.step},
          {"generation", times.id.generation},
          {"reached", reached_name(times.reached)},
          {"skipped", times.skipped},
          {"bytes", times.bytes},
          {"ranks", context.communicator.size()},
          {"block_s", times.block_s},
          {"fast_s", or_null(times.fast_s)},
          {"durable_s", or_null(times.durable_s)},
          {"drain_s", or_null(times.drain_s)},
          {"fast_bytes_per_s", or_null(rate_of(times, times.fast_s))},
          {"durable_bytes_per_s", or_null(rate_of(times, times.durable_s))},
          {"drain_bytes_per_s", or_null(rate_of(times, times.drain_s))},
          {"backlog_bytes", outcome.counts.backlog_bytes},
          {"seed", context.seed},
          {"slow", tier_json(slow)},
          {"fast", fast == nullptr ? Json() : tier_json(*fast)},
          {"verdict", times.skipped           ? "skipped"
                      : outcome.timeout_error ? "timed_out"
                                              : "ok"}};
}

void print_saved(const SaveOutcome& outcome, const Tier& slow, const Tier* fast, const Output& output) {
  const CheckpointTimes& times = outcome.times;
  const auto rate_text = [&](const std::optional<double>& seconds) {
    return or_dash(rate_of(times, seconds), [&](double rate) { return format_rate(rate, output); });
  };
  Table table({{"run", Align::left},
               {"checkpoint"},
               {"reached", Align::left},
               {"bytes"},
               {"block"},
               {"to fast"},
               {std::string(rate_unit(output))},
               {"to durable"},
               {std::string(rate_unit(output))},
               {"drain"},
               {std::string(rate_unit(output))}});
  table.row({outcome.run, short_name(times.id),
             times.skipped ? "skipped" : std::string(reached_name(times.reached)),
             format_bytes(double(times.bytes), output), format_seconds(times.block_s),
             or_dash(times.fast_s, format_seconds), rate_text(times.fast_s),
             or_dash(times.durable_s, format_seconds), rate_text(times.durable_s),
             or_dash(times.drain_s, format_seconds), rate_text(times.drain_s)});
  print_text(table.text());
  if (fast != nullptr && fast->facts.memory)
    print_text(
        fmt::format("the fast tier '{}' is volatile: checkpoints that are only there are lost when this "
                    "machine restarts\n",
                    printable(fast->name)));
  if (slow.facts.memory)
    print_text(fmt::format(
        "the slow tier '{}' is volatile: even durable checkpoints are lost when this machine restarts\n",
        printable(slow.name)));
}

}  // namespace

void report_save(const SaveOutcome& outcome, const Tier& slow, const Tier* fast,
                 const CommandContext& context) {
  if (context.output.json)
    print_json(to_json(outcome, slow, fast, context));
  else
    print_saved(outcome, slow, fast, context.output);
}

}  // namespace penstock
