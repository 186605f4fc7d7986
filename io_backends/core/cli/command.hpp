// A command of the main program: `penstock <name> ...`. A command lives in the highest room it needs.
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

// How a command talks to its user. Everything on stdout is either the table or, with json, one JSON object a
// line.
struct Output {
  bool json = false;
  bool si_units = false;  // MB/s instead of MiB/s
  bool progress = false;  // resolved: on a terminal, or asked for
};

struct CommandContext {
  const Options& options;                    // of the command's own table and the common ones
  std::span<const std::string> positionals;  // arguments, in order
  std::span<const std::string> argv;         // the whole line, for the record
  std::string_view command;
  Output output;
  std::uint64_t seed = 0;  // --seed, or one drawn for this run
  Communicator& communicator;
  std::span<const MetricInfo> metrics = {};         // CommandInfo::metrics
  std::span<const std::string_view> findings = {};  // CommandInfo::findings
  // Of the site files: names, each with the TIER that it stands for; and the words that start ranks, with
  // {ranks} in them (none where no file says).
  std::span<const OptionWord> named_tiers = {};
  std::span<const std::string> launcher = {};
};

// A command, or a subcommand of one, which is a table of its own in a file of its own.
//
// Returns the exit code for what was measured (0 done, 1 a check did not hold, or the command's own), or an
// Error, which the main program prints and maps (exit_code()). An interrupted command writes what it has and
// returns 0 or 1: the main program turns that into 128 + signal.
struct CommandInfo {
  std::string_view name;  // the words after "penstock": "read", "checkpoint gc"
  std::string_view summary;
  OptionTable options = {};
  Result<int> (*run)(const CommandContext& context) = nullptr;
  std::string_view synopsis;     // "penstock read CORPUS [--tier TIER]... [options]"
  std::string_view examples[2];  // worked examples: a line, and what it does behind '#'
  std::string_view notes = {};   // below them in --help: what the options do not say, such as exit codes
  // What the positionals are, a word for each: "CORPUS"; "" for none. One that begins with '[' may be left
  // out, one that ends in "..." may be repeated: "NAME [RESULTS]...".
  std::string_view arguments = {};
  bool measures = false;  // also takes the options of every measuring command
  bool ranks = false;     // may run as one job over several ranks
  bool pinned = false;    // takes those of them that choose processors
  // Of a command whose first argument is a subcommand: all of them. They have the options, the arguments and
  // `run`; `measures`, `ranks`, `findings` and `metrics` of the command are those of any of
  // them.
  std::span<const CommandInfo* const> (*subcommands)() = nullptr;
  // Names of parameters in its records that no option gives and that are not work: what a run found out. A
  // parameter that is neither here nor an option is work.
  std::span<const std::string_view> findings = {};
  // All metrics that its records can have, in order of importance: a sweep shows the first that a record has.
  std::span<const MetricInfo> metrics = {};
};

const Registry<CommandInfo>& command_registry();

// The options that all commands share (--json, --units, --progress, --config ...), and those of measuring
// commands (--results, --label, --pair, --seed, --cpus, --numa).
OptionTable common_options();
OptionTable measuring_options();
// Of these, --cpus and --numa.
OptionTable placement_options();
inline constexpr OptionSpec kSeedOption{.name = "seed",
                                        .role = OptionRole::repeat,
                                        .type = OptionType::integer,
                                        .value = "N",
                                        .help = "of everything random; drawn and recorded if absent",
                                        .group = "Record",
                                        .at_least = 0};

// None for a command without.
std::span<const CommandInfo* const> subcommands_of(const CommandInfo& command);
// "gc" of "checkpoint gc", "read" of "read".
std::string_view last_word(const CommandInfo& command);

}  // namespace penstock
