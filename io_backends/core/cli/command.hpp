// Describes the commands of the main program: `penstock <name> ...`. The source of a command is in the
// highest component (top-level folder) that it uses.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>

#include "io_backends/core/metric.hpp"
#include "io_backends/core/options.hpp"
#include "io_backends/core/plugin.hpp"
#include "io_backends/core/ranks/communicator.hpp"
#include "io_backends/core/result.hpp"

namespace penstock {

// How a command prints: tables for people or, with `json`, one JSON object a line on stdout.
struct Output {
  bool json = false;
  bool si_units = false;  // print MB/s instead of MiB/s
  bool progress = false;  // show progress: stderr is a terminal, or --progress always
};

struct CommandContext {
  const Options& options;                    // the values of all options
  std::span<const std::string> positionals;  // the arguments: the words that are no options, in order
  std::span<const std::string> argv;         // the whole command line, for the record
  std::string_view command;
  Output output;
  uint64_t seed = 0;  // --seed, or a random one for this run
  Communicator& communicator;
  std::span<const MetricInfo> metrics = {};         // the CommandInfo::metrics of this command
  std::span<const std::string_view> findings = {};  // the CommandInfo::findings of this command
  // The names that site files (penstock.yaml) give to tiers: NAME -> TIER.
  std::span<const OptionWord> named_tiers = {};
  // The words of the command that starts a job's ranks, such as mpirun with its options. It comes from the
  // site files (penstock.yaml); empty if none has it. One word contains {ranks}, which stands for the number
  // of ranks.
  std::span<const std::string> launcher = {};
  // Show the user a note, or a warning, of one sentence; any thread calls them. If not set, they do nothing.
  std::function<void(std::string_view)> log = [](std::string_view) {};
  std::function<void(std::string_view)> warn = [](std::string_view) {};
};

// Describes a command or a subcommand.
//
// run() returns the exit code of finished work: 0 if it succeeded, 1 if a check failed, or a code of the
// command's own. If run() returns an Error, the main program prints it and exits with the code that
// exit_code() gives for it. A command that a signal interrupts writes the results that it has and returns 0
// or 1; the main program then exits with 128 + the signal's number.
struct CommandInfo {
  std::string_view name;  // the words after "penstock": "read", "checkpoint gc"
  std::string_view summary;
  OptionTable options = {};
  Result<int> (*run)(const CommandContext& context) = nullptr;
  std::string_view synopsis;     // "penstock read CORPUS [--tier TIER]... [options]"
  std::string_view examples[2];  // each: a command line, then its effect after '#'
  // Text that --help prints after the examples. It explains what the options do not, such as exit codes.
  std::string_view notes = {};
  // The arguments, one word for each: "CORPUS"; "": none. A word that begins with '[' is optional; one that
  // ends in "..." may be repeated: "NAME [RESULTS]...".
  std::string_view arguments = {};
  bool measures = false;       // true: the command also has the options of measuring_options()
  bool runs_on_ranks = false;  // true: the command may run as one job of several ranks
  bool has_placement = false;  // true: the command has placement_options(), but is no measuring command
  // Returns the subcommands; null if the command has none. If it has some, each subcommand has its own
  // options, arguments and run(), and the command has none. But `measures`, `runs_on_ranks`, `findings` and
  // `metrics` of the command cover all its subcommands.
  std::span<const CommandInfo* const> (*subcommands)() = nullptr;
  // Names of the parameters in the command's records that the run found out. Of the other parameters, those
  // that are not options describe the work.
  std::span<const std::string_view> findings = {};
  // All metrics of the command's records, the most important first: a sweep shows the first metric that a
  // record has.
  std::span<const MetricInfo> metrics = {};
};

const Registry<CommandInfo>& command_registry();

// The options that every command has: --json, --units, --progress, --config ...
OptionTable common_options();
// The options that measuring commands have in addition: --results, --label, --pair, --seed, --cpus, --numa.
OptionTable measuring_options();
// The options of commands that only choose where they run: --cpus and --numa.
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
