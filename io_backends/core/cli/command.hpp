// Describes the commands of the main program: `penstock <name> ...`. The components (top-level folders) are
// layers; the source of a command is in the highest component whose code it uses.
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
#include "io_backends/core/time_range.hpp"

namespace penstock {

class LiveTiers;  // io_backends/tiers/live_tiers.hpp

// How a command prints. Without `json`: tables for people. With `json`: one JSON object on each line of
// stdout.
struct Output {
  bool json = false;
  bool si_units = false;  // true: print MB/s instead of MiB/s
  // true: group the digits of numbers by commas, "16,384". The text goes to a terminal or into a document, so
  // no program reads it.
  bool groups_digits = false;
  bool progress = false;  // true: show progress (stderr is a terminal, or --progress is `always`)
  // true: a long command prints a line for each step (stderr is no terminal, and --progress is not `never`)
  bool logs_steps = false;
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
  // The tiers to which site files (penstock.yaml) give a name: NAME -> TIER.
  std::span<const OptionWord> named_tiers = {};
  // The command that starts the ranks of a job, such as mpirun with its options, word by word. The word that
  // contains {ranks} gets the number of ranks in its place. From the site files (penstock.yaml); empty if
  // they have none.
  std::span<const std::string> launcher = {};
  // Gets the tiers that the command measures, if somebody watches it (--metrics-port); else null.
  LiveTiers* live_tiers = nullptr;
  // log() shows the user a note of one sentence, warn() a warning. Any thread may call them. By default they
  // print nothing.
  std::function<void(std::string_view)> log = [](std::string_view) {};
  std::function<void(std::string_view)> warn = [](std::string_view) {};
};

// Describes a command or a subcommand.
//
// run() returns the exit code of finished work: 0 if it succeeded, 1 if a check failed, or a code of the
// command's own. If run() returns an Error, the main program prints it and exits with the code that
// exit_code() gives for it. A command that a signal interrupts writes the results that it has and returns 0
// or 1. The main program then exits with 128 + the signal's number.
struct CommandInfo {
  std::string_view name;  // the words after "penstock": "read", "checkpoint gc"
  std::string_view summary;
  OptionTable options = {};
  Result<int> (*run)(const CommandContext& context) = nullptr;
  std::string_view synopsis;     // "penstock read CORPUS [--tier TIER]... [options]"
  std::string_view examples[2];  // each: a command line, then its effect after '#'
  // Text that --help prints after the examples, for what the help of the options does not explain, such as
  // exit codes.
  std::string_view notes = {};
  // The arguments as --help shows them: "CORPUS", "NAME [RESULTS]...". Each word is one argument. One that
  // begins with '[' is optional, and one that ends in "..." may be repeated. "": no arguments.
  std::string_view arguments = {};
  bool measures = false;       // true: the command also has the options of measuring_options()
  bool runs_on_ranks = false;  // true: the command may run as one job of several ranks
  bool has_placement = false;  // true: the command has placement_options(), but is no measuring command
  // Returns the subcommands; the pointer is null if the command has none. A command with subcommands has no
  // options and no run() of its own: each subcommand has them. `findings` and `metrics` of the command apply
  // to all its subcommands. `measures` and `runs_on_ranks` must be true both in the command and in each
  // subcommand to which they apply.
  std::span<const CommandInfo* const> (*subcommands)() = nullptr;
  // Parameters in the command's records that the run finds out, such as the number of processes. They do not
  // describe the work, but all other parameters that are not options describe it.
  std::span<const std::string_view> findings = {};
  // All metrics of the command's records, the most important first: a sweep shows the first metric that a
  // record has.
  std::span<const MetricInfo> metrics = {};
  // Returns the expected time of a run with these options and arguments. It may read a little of the data,
  // and changes nothing. Null: the time is unknown.
  Result<TimeRange> (*expected_time)(const CommandContext& context) = nullptr;
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
                                        .help = "random seed (default: random, recorded)",
                                        .group = "Record",
                                        .at_least = 0};

inline constexpr OptionSpec kMetricsPortOption{
    .name = "metrics-port",
    .role = OptionRole::output,
    .type = OptionType::integer,
    .value = "N",
    .help = "serve live figures for Prometheus at http://127.0.0.1:N/metrics while it runs; 0: a free port",
    .group = "Record",
    .at_least = 0};

// The subcommands of a command; empty if it has none.
std::span<const CommandInfo* const> subcommands_of(const CommandInfo& command);
// Returns "gc" for "checkpoint gc", and "read" for "read".
std::string_view last_word(const CommandInfo& command);

}  // namespace penstock
