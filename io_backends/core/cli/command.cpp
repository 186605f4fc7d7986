#include "io_backends/core/cli/command.hpp"

namespace penstock {
namespace {

constexpr std::string_view kOutputGroup = "Output";

constexpr OptionSpec kCommonOptions[] = {
    {.name = "json",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "print one JSON object per line on stdout, and nothing else",
     .group = kOutputGroup},
    {.name = "units",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = "iec|si",
     .fallback = "iec",
     .help = "units in tables: MiB/s or MB/s (records always use SI units)",
     .group = kOutputGroup},
    {.name = "progress",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = "auto|never|always",
     .fallback = "auto",
     .help = "show progress on stderr; auto: only on a terminal",
     .group = kOutputGroup},
    {.name = "config",
     .role = OptionRole::output,
     .value = "FILE.yaml",
     .help = "read flags from a file; flags on the command line override it",
     .group = "Configuration"},
    {.name = "no-config",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "ignore ./penstock.yaml and ~/.config/penstock/penstock.yaml",
     .group = "Configuration"},
};

constexpr OptionSpec kMeasuringOptions[] = {
    {.name = "results",
     .role = OptionRole::output,
     .value = "DIR",
     .fallback = "penstock-results",
     .help = "folder for the record file of this run",
     .group = "Record"},
    {.name = "label",
     .role = OptionRole::output,
     .value = "KEY=VALUE",
     .help = "add a label to every record",
     .group = "Record",
     .repeated = true},
    {.name = "pair",
     .role = OptionRole::output,
     .value = "SUITE,INDEX,ARM",
     .help = "record which arm of an interleaved comparison this run is (set by sweep)",
     .group = "Record"},
    kSeedOption,
    kMetricsPortOption,
    {.name = "cpus",
     .role = OptionRole::work,
     .value = "LIST",
     .help = "run only on these CPUs: 0,2,4..7",
     .group = "Placement"},
    {.name = "numa",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "run only on the CPUs of this NUMA node",
     .group = "Placement",
     .at_least = 0},
};

}  // namespace

OptionTable common_options() {
  return kCommonOptions;
}
OptionTable measuring_options() {
  return kMeasuringOptions;
}
OptionTable placement_options() {
  return OptionTable(kMeasuringOptions).last(2);
}

std::span<const CommandInfo* const> subcommands_of(const CommandInfo& command) {
  return command.subcommands == nullptr ? std::span<const CommandInfo* const>() : command.subcommands();
}

std::string_view last_word(const CommandInfo& command) {
  return command.name.substr(command.name.rfind(' ') + 1);
}

}  // namespace penstock
