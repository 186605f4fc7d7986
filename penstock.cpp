// The main program: finds the command, parses its arguments by its table of options, runs it, and turns its
// result into an exit code.
#include <fmt/format.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <cstdio>
#include <ctime>
#include <exception>
#include <memory>
#include <random>
#include <span>
#include <string>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/recipe/recipe.hpp"
#include "io_backends/backend/backend_info.hpp"
#include "io_backends/configuration/config.hpp"
#include "io_backends/core/build_info.hpp"
#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/command_line.hpp"
#include "io_backends/core/cli/glossary.hpp"
#include "io_backends/core/cli/manuals.hpp"
#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/printable.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/version.hpp"
#include "io_backends/core/ranks/collectives.hpp"
#include "io_backends/core/ranks/launcher.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/system/measuring_clock.hpp"
#include "io_backends/core/system/placement.hpp"
#include "io_backends/core/system/subprocess.hpp"
#include "io_backends/core/units.hpp"
#include "miniapps/train/miniapp.hpp"
#include "profiling/exporters/exporter.hpp"
#include "profiling/serve/metrics_server.hpp"
#include "results/record/record.hpp"

namespace penstock {
namespace {

std::string overview() {
  return overview_text(plugin_list(command_registry()), plugin_list(backend_registry()));
}

// The words that shell completion offers for the first argument of a command.
ArgumentChoices argument_choices() {
  return {{"generate", plugin_names(recipe_registry())}, {"train", plugin_names(miniapp_registry())}};
}

// The page of the reference that lists the verdicts of records.
std::string verdicts_page() {
  std::string page =
      "# Verdicts\n\nEach record has a verdict, from harmless to fatal, and its `reason`. A command exits "
      "with 1 if any of its records has that code, else with 77 if any has. After a signal it exits with "
      "128 + its number.\n\n| verdict | meaning | exit code |\n|---|---|---|\n";
  for (int i = 0; i <= int(kWorstVerdict); ++i)
    page += fmt::format("| `{}` | {} | {} |\n", verdict_name(Verdict(i)), verdict_meaning(Verdict(i)),
                        verdict_exit_code(Verdict(i)));
  return page;
}

// The seed of the run: the value of --seed, or a random number. Each rank would draw a different number, so
// only rank 0 calls this function and sends the seed to the others.
uint64_t choose_seed(const CommandInfo& command, const Options& options) {
  if (find_option(command, kSeedOption.name) == nullptr) return 0;
  if (options.given("seed")) return uint64_t(options.integer("seed"));
  std::random_device entropy;
  return entropy() & 0x7fffffffU;
}

Result<void> pin_to_cpus(const CommandInfo& command, const Options& options) {
  if (!command.measures && !command.has_placement) return success();
  if (options.given("numa")) PENSTOCK_TRY(run_on_numa_node(uint64_t(options.integer("numa"))));
  if (options.given("cpus")) {
    PENSTOCK_ASSIGN(const std::vector<uint64_t> cpus, parse_list(options.text("cpus")));
    PENSTOCK_TRY(run_on_cpus(cpus));
  }
  return success();
}

// Fails if the clock does not keep the kernel's pace and the command measures. Other commands get a warning,
// because they may print speeds too. So do all commands if the clock's pace is unknown.
Result<void> check_clock(const CommandInfo& command) {
  const Result<void> clock = check_measuring_clock();
  if (clock.ok() || (command.measures && clock.error().code != Errc::permission_denied)) return clock;
  warn(clock.error().message());
  return success();
}

// Starts the server of --metrics-port, if the option was given. Only rank 0 serves, the figures of its own
// process. Collective: every rank must call it.
Result<std::shared_ptr<void>> start_metrics_server(Communicator& ranks, const CommandInfo& command,
                                                   const Options& options, const LiveTiers& tiers) {
  std::shared_ptr<void> server;
  const std::string_view name = kMetricsPortOption.name;
  if (find_option(command, name) == nullptr || !options.given(name)) return server;
  PENSTOCK_TRY(on_root(ranks, [&]() -> Result<void> {
    WatchedRun run{
        .labels = {{"command", std::string(command.name)}, {"version", std::string(build_info().version)}},
        .started = std::time(nullptr),
        .log = note,
        .warn = warn};
    PENSTOCK_ASSIGN(server, serve_metrics(options.integer(name), std::move(run), tiers));
    return success();
  }));
  return server;
}

Error one_process_error(const CommandInfo& command, int ranks) {
  return make_error(
      Errc::invalid_argument,
      "'penstock {}' runs as one process and was launched as {} ranks: start it without the launcher, or as "
      "one task (srun -n 1)",
      command.name, ranks);
}

// A terminal is read by people. Another program would take "1,234" for two numbers.
bool groups_digits_on_stdout() {
  return ::isatty(STDOUT_FILENO) == 1;
}

// Runs the command on this rank. Collective: every rank must call it.
Result<int> run_command(Communicator& ranks, const CommandInfo& command, std::span<const std::string> argv) {
  auto line = read_command_line(command, argv.subspan(2), command_registry().present(), note);
  if (line.ok() && ranks.size() > 1 && !line->command->runs_on_ranks)
    line = one_process_error(*line->command, ranks.size());
  PENSTOCK_TRY(all_ok(ranks, line));
  const Options& options = line->options;
  PENSTOCK_ASSIGN(const uint64_t seed,
                  on_root(ranks, [&]() -> Result<uint64_t> { return choose_seed(*line->command, options); }));
  PENSTOCK_TRY(all_ok(ranks, pin_to_cpus(*line->command, options)));
  PENSTOCK_TRY(all_ok(ranks, check_clock(*line->command)));
  LiveTiers live_tiers;
  PENSTOCK_ASSIGN(const std::shared_ptr<void> metrics_server,
                  start_metrics_server(ranks, *line->command, options, live_tiers));
  const std::string& progress = options.text("progress");
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  const bool shows_progress = progress == "always" || (progress == "auto" && is_terminal);
  const CommandContext context{.options = options,
                               .positionals = line->arguments,
                               .argv = argv,
                               .command = command.name,
                               .output = {.json = options.flag("json"),
                                          .si_units = options.text("units") == "si",
                                          .groups_digits = !options.flag("json") && groups_digits_on_stdout(),
                                          .progress = shows_progress && ranks.root(),
                                          .logs_steps = progress != "never" && !is_terminal && ranks.root()},
                               .seed = seed,
                               .communicator = ranks,
                               .metrics = command.metrics,
                               .findings = command.findings,
                               .named_tiers = line->named_tiers,
                               .launcher = line->launcher,
                               .live_tiers = &live_tiers,
                               .log = note,
                               .warn = warn};
  return line->command->run(context);
}

// Waits until all ranks have finished the command. Returns the first error of any rank, on every rank.
// Collective: every rank must call it.
// A rank that succeeded waits without a limit. A rank that failed waits only 10 seconds: the others may be
// blocked in a collective call that this rank never reaches. A rank whose wait ends without the others prints
// its own error, or that the others left, and ends the whole job with abandon().
Result<int> finish_ranks(Communicator& ranks, std::string_view command, Result<int> result) {
  constexpr std::chrono::seconds kPatienceAfterFailure{10};
  constexpr std::chrono::hours kForever{24 * 365 * 100};
  const std::chrono::milliseconds patience =
      result.ok() ? std::chrono::milliseconds(kForever) : kPatienceAfterFailure;
  if (!ranks.wait_for_all(patience)) {
    print_text(fmt::format("penstock {}: only on rank {} of {}: {}\n", command, ranks.rank(), ranks.size(),
                           result.ok() ? "the other ranks ended first" : printable(result.error().message())),
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
  // An error of usage, or of what this machine lacks, is not the signal's doing: a launcher ends the other
  // ranks when one rank has failed in this way.
  const bool has_own_reason =
      code == exit_code(Errc::invalid_argument) || code == exit_code(Errc::unsupported);
  return interrupted() && !has_own_reason ? 128 + interrupt_signal() : code;
}

// Prints the help of a command, or else the meaning of a term. `words` are those after "help"; a term may
// have several: "queue depth". A command of the same name comes first.
int print_help(std::span<const std::string> words) {
  if (words.empty()) {
    print_text(overview() + "\nTerms ('penstock help TERM' explains one):\n" + list_of_terms());
    return finish(0, "");
  }
  const Result<const CommandInfo*> command = command_registry().find(words[0]);
  if (command.ok()) {
    print_text(command_help(command_named_by(**command, words.subspan(1))));
    return finish(0, "");
  }
  const std::string text = fmt::format("{}", fmt::join(words, " "));
  if (const std::string term = term_help(text); !term.empty()) {
    print_text(term);
    return finish(0, "");
  }
  if (command.error().code == Errc::unsupported) return finish(command.error(), "");
  return finish(unknown_term(text, plugin_names(command_registry())), "");
}

// Joins the job that a launcher started, and runs the command as one of its ranks. Only rank 0 prints, and
// its exit code is the job's. The other ranks return 0, unless they cannot join the job.
int finish_job(const CommandInfo& command, const std::vector<std::string>& argv) {
  const auto launch = look_for_launcher();
  const bool is_root = launch.rank == 0;
  if (!is_root) silence_notes();
  if (launch.ranks > 1 && !command.runs_on_ranks)
    return is_root ? finish(one_process_error(command, launch.ranks), command.name) : 0;
  if (const Result<void> joinable = check_launch(launch); !joinable.ok())
    return is_root ? finish(joinable.error(), command.name) : exit_code(joinable.error().code);
  const auto ranks = join_ranks(launch);
  // A rank that has not joined the job cannot send its error to rank 0, so it prints the error itself.
  if (!ranks.ok()) return finish(ranks.error(), command.name);
  Result<int> result = finish_ranks(**ranks, command.name, run_command(**ranks, command, argv));
  return is_root ? finish(std::move(result), command.name) : 0;
}

int main_program(const std::vector<std::string>& argv) {
  catch_interrupts();
  end_with_parent();
  if (::isatty(STDERR_FILENO) != 1) show_progress_as_lines();
  std::signal(SIGCHLD, SIG_DFL);  // if it were ignored, the exit status of child processes would be lost
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
    return finish(write_manuals(argv[2], command_registry().present(), argument_choices(),
                                {{"verdicts.md", verdicts_page()}}),
                  "");
  if (word == "--tier-names") {
    for (const std::string& tier : site_tier_names(command_registry().present())) print_text(tier + "\n");
    return finish(0, "");
  }
  if (word == "help" || word == "--help" || word == "-h") return print_help(std::span(argv).subspan(2));
  const Result<const CommandInfo*> command = command_registry().find(word);
  if (!command.ok()) return finish(command.error(), "");
  if (asks_for_help(std::span(argv).subspan(2))) {
    print_text(command_help(command_named_by(**command, std::span(argv).subspan(2))));
    return finish(0, "");
  }
  return finish_job(**command, argv);
}

}  // namespace
}  // namespace penstock

int main(int argc, char** argv) {
  try {
    return penstock::main_program({argv, argv + argc});
  } catch (const std::bad_alloc&) {
    std::fputs("penstock: out of memory\n", stderr);
  } catch (const std::exception& thrown) {
    const penstock::Error error = penstock::error_of(thrown);
    const bool internal = error.code == penstock::Errc::internal;
    std::fprintf(stderr, "penstock: %s%s\n", internal ? "internal error: " : "", error.message().c_str());
    return penstock::exit_code(error.code);
  }
  return 2;
}
