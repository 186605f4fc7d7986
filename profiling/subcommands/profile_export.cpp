// `penstock profile export --to FORMAT SESSION... -o FILE`: writes sessions to a file for another tool.
#include <fmt/format.h>

#include <string>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/units.hpp"
#include "profiling/exporters/exporter.hpp"
#include "profiling/subcommands/profile_arguments.hpp"

namespace penstock {
namespace {

std::string join_exporters(std::string_view divider, std::string (*text_of)(const ExporterInfo&)) {
  std::string texts;
  for (const ExporterInfo* const one : exporter_registry().present())
    texts += (texts.empty() ? "" : std::string(divider)) + text_of(*one);
  return texts;
}

// Returns the names of all exporters: "chrome|csv".
std::string_view exporter_names() {
  static const std::string names = join_exporters("|", [](const auto& one) { return std::string(one.name); });
  return names;
}

// Returns the summaries of all exporters: "chrome: a trace for Chrome and Perfetto; csv: a row for each
// file".
std::string_view exporter_summaries() {
  static const std::string summaries =
      join_exporters("; ", [](const auto& one) { return fmt::format("{}: {}", one.name, one.summary); });
  return summaries;
}

Result<int> run_export(const CommandContext& context) {
  const Options& options = context.options;
  const std::string& output = options.text("output");
  if (!options.given("to"))
    return make_error(Errc::invalid_argument, "'export' needs a format: add --to {}", exporter_names());
  PENSTOCK_ASSIGN(const ExporterInfo* const exporter, exporter_registry().find(options.text("to")));
  if (!exporter->accepts_tiers && !options.texts("tier").empty())
    return make_error(Errc::invalid_argument, "--to {} takes no --tier", exporter->name);
  const SessionFilter filter = filter_of(options, context.positionals);
  if (options.given("output")) PENSTOCK_TRY(check_output_outside_sessions(output, context.positionals));
  if (output.empty() && !exporter->output.empty())
    return make_error(Errc::invalid_argument, "'export --to {}' needs a destination: {}", exporter->name,
                      exporter->output);
  PENSTOCK_ASSIGN(const ExportOutcome outcome, exporter->write({.context = context,
                                                                .output = output,
                                                                .sessions = context.positionals,
                                                                .filter = filter,
                                                                .open = &open_named_sessions}));
  for (const std::string& sentence : outcome.notes) note(sentence);
  for (const std::string& sentence : outcome.warnings) warn(sentence);
  if (!context.output.json) {
    const std::string_view items = outcome.item_name;
    note(fmt::format("{}: {} {}", outcome.file, format_count(outcome.count),
                     outcome.count == 1 && items.ends_with('s') ? items.substr(0, items.size() - 1) : items));
  } else if (outcome.json.empty()) {
    print_json({{"file", outcome.file}, {std::string(outcome.item_name), outcome.count}});
  } else {
    for (const Json& line : outcome.json) print_json(line);
  }
  return 0;
}

// Not constexpr, because the help texts name the exporters, which are known only at run time.
const OptionSpec kExportOptions[] = {
    output_option("PATH", "the file to write; for records and tensorboard the folder"),
    kIncludeOption,
    kExcludeOption,
    kAllOption,
    {.name = "to",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = exporter_names(),
     .help = exporter_summaries(),
     .group = "Export"},
    {.name = "tier",
     .role = OptionRole::target,
     .value = "NAME=PATH",
     .help = "with --to records: the files below PATH are one tier (default: one tier per mount)",
     .group = "Export",
     .repeated = true},
};

}  // namespace

extern const CommandInfo profile_export;
const CommandInfo profile_export{
    .name = "profile export",
    .summary = "convert a session for other tools",
    .options = kExportOptions,
    .run = &run_export,
    .synopsis = "penstock profile export --to FORMAT SESSION... -o FILE",
    .examples = {"penstock profile export --to chrome session -o trace.json   # for Perfetto and Chrome",
                 "penstock profile export --to darshan session -o session.darshan   # for darshan-parser and "
                 "PyDarshan"},
    .arguments = "SESSION...",
};

}  // namespace penstock
