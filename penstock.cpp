// The main program: finds the command, parses its arguments by its table of options, runs it, and turns its
// result into an exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <cstdio>
#include <exception>
#include <random>
#include <string>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/backend/backend.hpp"
#include "io_backends/configuration/config.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/cli/manuals.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/version.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/placement.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/miniapp.hpp"
#include "profiling/exporters/exporter.hpp"

namespace penstock {
namespace {

std::string overview() {
  return overview_text(plugin_list(command_registry()), plugin_list(backend_registry()));
}

// What shell completion offers for the first argument of a command.
ArgumentChoices argument_choices() {
  return {{"generate", plugin_names(recipe_registry())}, {"train", plugin_names(miniapp_registry())}};
}

Result<std::uint64_t> resolve_seed(const CommandInfo& command, const Options& options) {
  if (find_option(command, kSeedOption.name) == nullptr) return std::uint64_t{0};
  if (options.given("seed")) return static_cast<std::uint64_t>(options.integer("seed"));
  std::random_device entropy;
  return static_cast<std::uint64_t>(entropy() & 0x7fffffffU);
}

Result<void> place(const CommandInfo& command, const Options& options) {
  if (!command.measures && !command.pinned) return success();
  if (options.given("numa"))
    PENSTOCK_TRY(run_on_numa_node(static_cast<std::uint64_t>(options.integer("numa"))));
  if (options.given("cpus")) {
    PENSTOCK_ASSIGN(const std::vector<std::uint64_t> cpus, parse_list(options.text("cpus")));
    PENSTOCK_TRY(run_on_cpus(cpus));
  }
  return success();
}

// Returns rank 0's seed on every rank, because each rank draws a random seed of its own. Collective: every
// rank calls it.
Result<std::uint64_t> same_seed(Communicator& ranks, std::uint64_t seed) {
  std::uint64_t agreed = ranks.root() ? seed : 0;
  PENSTOCK_TRY(ranks.all_reduce(std::span(&agreed, 1), Reduction::max));
  return agreed;
}

Result<int> run_over(Communicator& ranks, const CommandInfo& command, const CommandLine& line,
                     const Config& config, std::span<const std::string> argv) {
  PENSTOCK_ASSIGN(const std::uint64_t drawn, resolve_seed(*line.command, line.options));
  PENSTOCK_ASSIGN(const std::uint64_t seed, same_seed(ranks, drawn));
  PENSTOCK_TRY(all_ok(ranks, place(*line.command, line.options)));
  const std::string& progress = line.options.text("progress");
  const bool terminal = progress == "always" || (progress == "auto" && ::isatty(STDERR_FILENO) == 1);
  const CommandContext context{.options = line.options,
                               .positionals = line.arguments,
                               .argv = argv,
                               .command = command.name,
                               .output = {.json = line.options.flag("json"),
                                          .si_units = line.options.text("units") == "si",
                                          .progress = terminal && ranks.root()},
                               .seed = seed,
                               .communicator = ranks,
                               .metrics = command.metrics,
                               .findings = command.findings,
                               .named_tiers = config.tiers,
                               .launcher = config.launcher};
  return line.command->run(context);
}

Error one_process_only(const CommandInfo& command, int ranks) {
  return make_error(Errc::invalid_argument,
                    fmt::format("'penstock {}' runs as one process and was launched as {} ranks: start it "
                                "once, without the launcher",
                                command.name, ranks));
}

Result<int> run_command(Communicator& ranks, const CommandInfo& command, std::span<const std::string> argv) {
  const std::span<const std::string> words = argv.subspan(2);
  Config config;
  const auto read_line = [&]() -> Result<CommandLine> {
    PENSTOCK_ASSIGN(config, read_config(command, words, command_registry().present()));
    PENSTOCK_ASSIGN(CommandLine line, parse_with_config(command, words, config));
    if (ranks.size() > 1 && !line.command->ranks) return one_process_only(*line.command, ranks.size());
    return line;
  };
  const Result<CommandLine> line = read_line();
  PENSTOCK_TRY(all_ok(ranks, line));
  return run_over(ranks, command, *line, config, argv);
}

// Waits until all ranks have finished the command, and returns the first error of any rank on every rank.
// Collective.
// A rank that failed waits only 10 seconds: the others may be blocked in a collective call that this rank
// never reaches. It then prints its own error and ends the whole job with abandon(). A rank that succeeded
// waits without a limit.
Result<int> finish_ranks(Communicator& ranks, std::string_view command, Result<int> result) {
  constexpr std::chrono::seconds kLeftAlone{10};
  constexpr std::chrono::hours kForever{24 * 365 * 100};
  const std::chrono::milliseconds patience = result.ok() ? std::chrono::milliseconds(kForever) : kLeftAlone;
  if (!ranks.meet(patience)) {
    print_text(fmt::format("penstock {}: on rank {} of {} alone: {}\n", command, ranks.rank(), ranks.size(),
                           result.ok() ? "the others left" : printable(result.error().message())),
               stderr);
    ranks.abandon(result.ok() ? 1 : exit_code(result.error().code));
  }
  PENSTOCK_TRY(all_ok(ranks, result));
  return result;
}

int finish(Result<int> result, std::string_view command) {
  int code = 0;
  if (result.ok()) {
    code = *result;
  } else {
    code = exit_code(result.error().code);
    const bool stopped = interrupted() && result.error().code == Errc::interrupted;
    print_text(fmt::format("penstock{}{}: {}\n", command.empty() ? "" : " ", command,
                           stopped ? "interrupted" : printable(result.error().message())),
               stderr);
  }
  if (std::fflush(stdout) != 0 || std::ferror(stdout) != 0) {
    std::perror("penstock: cannot write to standard output");
    if (code == 0) code = 1;
  }
  return interrupted() ? 128 + interrupt_signal() : code;
}

// Runs the command on this rank. Only rank 0 prints, and its exit code is the job's. The other ranks return
// 0, unless they cannot join the job.
int finish_job(const Launch& launch, const CommandInfo& command, const std::vector<std::string>& argv) {
  if (launch.rank != 0) leave_output_to_another_rank();
  if (launch.ranks > 1 && !command.ranks) {
    if (launch.rank != 0) return 0;
    return finish(one_process_only(command, launch.ranks), command.name);
  }
  const auto here = [&](Error error) {
    return launch.rank == 0 ? finish(std::move(error), command.name) : exit_code(error.code);
  };
  if (Result<void> joinable = check_launch(launch); !joinable.ok()) return here(std::move(joinable).error());
  Result<std::unique_ptr<Communicator>> ranks = join_ranks(launch);
  // No rank 0 is known, so every rank prints the error.
  if (!ranks.ok()) return finish(std::move(ranks).error(), command.name);
  Result<int> result = finish_ranks(**ranks, command.name, run_command(**ranks, command, argv));
  return launch.rank == 0 ? finish(std::move(result), command.name) : 0;
}

int main_program(const std::vector<std::string>& argv) {
  catch_interrupts();
  if (argv.size() < 2) {
    print_text(overview(), stderr);
    return 2;
  }
  const std::string& word = argv[1];
  if (word == "--version" || word == "-V") {
    print_text(version_text(argv.size() > 2 && argv[2] == "--json", backend_registry(), command_registry(),
                            exporter_registry(), format_registry(), miniapp_registry(), recipe_registry()));
    return finish(0, "");
  }
  if (word == "--write-manuals" && argv.size() == 3)
    return finish(write_manuals(argv[2], command_registry().present(), argument_choices()), "");
  if (word == "--tier-names") {
    for (const std::string& tier : site_tier_names(command_registry().present())) print_text(tier + "\n");
    return finish(0, "");
  }
  const bool help = word == "help" || word == "--help" || word == "-h";
  if (help && argv.size() == 2) {
    print_text(overview());
    return finish(0, "");
  }
  const std::string& name = help ? argv[2] : word;
  const Result<const CommandInfo*> command = command_registry().find(name);
  if (!command.ok()) return finish(command.error(), "");
  if (help || asks_for_help(std::span(argv).subspan(2))) {
    print_text(command_help(command_asked_for(**command, std::span(argv).subspan(2))));
    return finish(0, "");
  }
  return finish_job(look_for_launcher(), **command, argv);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  try {
    return penstock::main_program({argv, argv + argc});
  } catch (const std::bad_alloc&) {
    std::fputs("penstock: out of memory\n", stderr);
  } catch (const std::exception& error) {
    std::fprintf(stderr, "penstock: internal error: %s\n", error.what());
  }
  return 2;
}
