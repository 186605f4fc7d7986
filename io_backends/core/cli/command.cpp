#include "io_backends/core/cli/command.hpp"

namespace penstock {
namespace {

constexpr std::string_view kOutputGroup = "Output";

constexpr OptionSpec kCommonOptions[] = {
    {.name = "json",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "machine-readable: one JSON object a line on stdout, nothing else",
     .group = kOutputGroup},
    {.name = "units",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = "iec|si",
     .fallback = "iec",
     .help = "MiB/s or MB/s in tables (records are always SI)",
     .group = kOutputGroup},
    {.name = "progress",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = "auto|never|always",
     .fallback = "auto",
     .help = "progress on stderr; auto: when it is a terminal",
     .group = kOutputGroup},
    {.name = "config",
     .role = OptionRole::output,
     .value = "FILE.yaml",
     .help = "takes any flag of the command from a file; a flag on the line wins",
     .group = "Configuration"},
    {.name = "no-config",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "ignores ./penstock.yaml and ~/.config/penstock/penstock.yaml",
     .group = "Configuration"},
};

constexpr OptionSpec kMeasuringOptions[] = {
    {.name = "results",
     .role = OptionRole::output,
     .value = "DIR",
     .fallback = "penstock-results",
     .help = "where the record file of this run goes",
     .group = "Record"},
    {.name = "label",
     .role = OptionRole::output,
     .value = "KEY=VALUE",
     .help = "added to every record",
     .group = "Record",
     .repeated = true},
    {.name = "pair",
     .role = OptionRole::output,
     .value = "SUITE,INDEX,ARM",
     .help = "says in every record which of several interleaved arms this run is (sweep gives it)",
     .group = "Record"},
    kSeedOption,
    {.name = "cpus",
     .role = OptionRole::work,
     .value = "LIST",
     .help = "run on these processors only: 0,2,4..7",
     .group = "Placement"},
    {.name = "numa",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "run on the processors of this NUMA node",
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
