// Describes the commands of the main program: `penstock <name> ...`. A command is in the highest component
// that it needs.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/metric.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// How a command prints. Its stdout is the table or, with `json`, one JSON object a line.
struct Output {
  bool json = false;
  bool si_units = false;  // print MB/s instead of MiB/s
  bool progress = false;  // show progress: on a terminal, or on request
};

struct CommandContext {
  const Options& options;                    // from the command's own table and the common ones
  std::span<const std::string> positionals;  // arguments, in order
  std::span<const std::string> argv;         // the whole line, for the record
  std::string_view command;
  Output output;
  std::uint64_t seed = 0;  // --seed, or a random one for this run
  Communicator& communicator;
  std::span<const MetricInfo> metrics = {};         // CommandInfo::metrics
  std::span<const std::string_view> findings = {};  // CommandInfo::findings
  // The named tiers of the site files: NAME -> TIER.
  std::span<const OptionWord> named_tiers = {};
  // From the site files: the words that start ranks, one of which contains {ranks}. Empty if no file has
  // them.
  std::span<const std::string> launcher = {};
};

// A command or a subcommand. Each is one table in one file.
//
// run() returns the exit code of a finished measurement: 0 done, 1 a check failed, or a code of the command.
// After an Error the main program prints it and uses exit_code(). An interrupted command writes its results
// so far and returns 0 or 1. The main program turns that into 128 + signal.
struct CommandInfo {
  std::string_view name;  // the words after "penstock": "read", "checkpoint gc"
  std::string_view summary;
  OptionTable options = {};
  Result<int> (*run)(const CommandContext& context) = nullptr;
  std::string_view synopsis;     // "penstock read CORPUS [--tier TIER]... [options]"
  std::string_view examples[2];  // examples: a command line, and its effect after '#'
  // in --help after the examples: what the options do not explain, such as exit codes
  std::string_view notes = {};
  // The arguments, one word for each: "CORPUS"; "": none. A word that begins with '[' is optional; one that
  // ends in "..." may be repeated: "NAME [RESULTS]...".
  std::string_view arguments = {};
  bool measures = false;  // also has the options of measuring_options()
  bool ranks = false;     // may run as one job over several ranks
  bool pinned = false;    // has placement_options(), but not the other options of measuring commands
  // The subcommands, for a command whose first argument is one. They have the options, the arguments and
  // `run`. `measures`, `ranks`, `findings` and `metrics` of the command cover all of them.
  std::span<const CommandInfo* const> (*subcommands)() = nullptr;
  // Names of parameters in its records that are results of the run and not work. Any other parameter that is
  // not an option counts as work.
  std::span<const std::string_view> findings = {};
  // All metrics of its records, in order of importance: a sweep shows the first one that a record has.
  std::span<const MetricInfo> metrics = {};
};

const Registry<CommandInfo>& command_registry();

// The options that every command has: --json, --units, --progress, --config ...
OptionTable common_options();
// The options that measuring commands have in addition: --results, --label, --pair, --seed, --cpus, --numa.
OptionTable measuring_options();
// Only --cpus and --numa.
OptionTable placement_options();
inline constexpr OptionSpec kSeedOption{.name = "seed",
                                        .role = OptionRole::repeat,
                                        .type = OptionType::integer,
                                        .value = "N",
                                        .help = "of everything random; drawn and recorded if absent",
                                        .group = "Record",
                                        .at_least = 0};

// The subcommands of a command; empty if it has none.
std::span<const CommandInfo* const> subcommands_of(const CommandInfo& command);
// Returns "gc" for "checkpoint gc", and "read" for "read".
std::string_view last_word(const CommandInfo& command);

}  // namespace penstock
