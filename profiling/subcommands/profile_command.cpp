// `penstock profile SUBCOMMAND ...`: what the I/O of any program does.
#include <climits>
#include <string>
#include <vector>

#include "io_backends/core/cli/command.hpp"
#include "io_backends/core/cli/subcommands.hpp"
#include "profiling/exporters/session_metrics.hpp"
#include "profiling/subcommands/profile_subcommands.hpp"

namespace penstock {
namespace {

constexpr std::string_view kOutput = "Where to";
constexpr std::string_view kWhich = "Which files (run: what a report shows later; all are recorded)";
constexpr std::string_view kRun = "run: a program and all that it begins";
constexpr std::string_view kTrace = "trace: in what runs already";
constexpr std::string_view kReport = "report: what was seen";
constexpr std::string_view kExport = "export: for other tools";
constexpr std::string_view kTop = "top: while it runs";
constexpr std::string_view kServe = "serve: a page of a session, for a browser on this machine";

constexpr OptionSpec kOptions[] = {
    {.name = "output",
     .role = OptionRole::output,
     .value = "PATH",
     .help = "run, attach, snapshot: the folder of the session (penstock-profile-TIME-PID if not given); "
             "export: the file, or for records and tensorboard the folder",
     .group = kOutput,
     .alias = "o"},
    {.name = "include",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "only files that match: '*.jpg', '/data/*', 'train/*' ('*' stands for '/' as well)",
     .group = kWhich,
     .repeated = true},
    {.name = "exclude",
     .role = OptionRole::work,
     .value = "GLOB",
     .help = "not these",
     .group = kWhich,
     .repeated = true},
    {.name = "all",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "also pipes, sockets and devices that have a name, and what Python reads to start (.py, .pyc, "
             ".so of its library "
             "folders, /proc, /sys)",
     .group = kWhich},
    {.name = "trace",
     .role = OptionRole::work,
     .type = OptionType::flag,
     .help = "keep every single call: offset, length, begin and end (also of attach)",
     .group = kRun},
    {.name = "trace-limit",
     .role = OptionRole::work,
     .type = OptionType::size,
     .value = "SIZE",
     .help = "of kept calls in a process's file (256MiB if not given, at least 128KiB, 0 for no limit): the "
             "oldest give way "
             "to the newest and are counted (also of attach)",
     .group = kRun,
     .at_least = 0},
    {.name = "every",
     .role = OptionRole::work,
     .type = OptionType::integer,
     .value = "N",
     .help = "a window of its own for every N steps that the program tells (spans, penstock_profile_step())",
     .group = kRun,
     .at_least = 1},
    {.name = "for",
     .role = OptionRole::work,
     .type = OptionType::duration,
     .value = "TIME",
     .help = "on: calls are kept so long, and then, or at Ctrl-C, only counted again",
     .group = kTrace},
    {.name = "rank",
     .role = OptionRole::target,
     .type = OptionType::list,
     .value = "LIST",
     .help = "of a SESSION's processes those of these ranks: 0,2 or 0..3",
     .group = kTrace,
     .at_least = 0},
    {.name = "by",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = "file|mount|process|directory|window",
     .fallback = "file",
     .help = "what a row stands for",
     .group = kReport},
    {.name = "top",
     .role = OptionRole::output,
     .type = OptionType::integer,
     .value = "N",
     .help = "rows (tables: 20, --json: all, if not given)",
     .group = kReport,
     .at_least = 1},
    {.name = "html",
     .role = OptionRole::output,
     .value = "FILE",
     .help = "write one self-contained page",
     .group = kReport},
    {.name = "to",
     .role = OptionRole::output,
     .type = OptionType::choice,
     .value = "chrome|csv|records|darshan|tensorboard",
     .help = "a trace for Chrome and Perfetto, a row for each file, records that 'penstock report' draws, a "
             "Darshan log (darshan-parser, PyDarshan), or a folder for TensorBoard",
     .group = kExport},
    {.name = "tier",
     .role = OptionRole::target,
     .value = "NAME=PATH",
     .help = "records: a tier is what lies below PATH (mounts, if not given)",
     .group = kExport,
     .repeated = true},
    {.name = "once",
     .role = OptionRole::output,
     .type = OptionType::flag,
     .help = "one table, and no more",
     .group = kTop},
    {.name = "interval",
     .role = OptionRole::output,
     .type = OptionType::duration,
     .value = "TIME",
     .fallback = "1s",
     .help = "from one table to the next",
     .group = kTop},
    {.name = "port",
     .role = OptionRole::output,
     .type = OptionType::integer,
     .value = "N",
     .fallback = "0",
     .help = "of 127.0.0.1, which alone is listened to; 0: one that is free. From another machine: ssh -L "
             "PORT:127.0.0.1:PORT NODE",
     .group = kServe,
     .at_least = 0},
};

struct Subcommand {
  std::string_view name;
  Result<int> (*run)(const CommandContext& context, ProfileArguments arguments);
  std::vector<std::string_view> takes;  // of kOptions
};

const std::vector<Subcommand>& subcommands() {
  static const std::vector<Subcommand> all{
      {"run", profile_run, {"output", "include", "exclude", "trace", "trace-limit", "every"}},
      {"attach", profile_attach, {"output", "include", "exclude", "trace", "trace-limit"}},
      {"detach", profile_detach, {}},
      {"status", profile_status, {}},
      {"trace", profile_trace, {"for", "rank"}},
      {"snapshot", profile_snapshot, {"output"}},
      {"report", profile_report, {"include", "exclude", "all", "by", "top", "html"}},
      {"export", profile_export, {"output", "include", "exclude", "all", "to", "tier"}},
      {"top", profile_top, {"include", "exclude", "all", "top", "once", "interval"}},
      {"serve", profile_serve, {"include", "exclude", "all", "port"}},
  };
  return all;
}

std::vector<SubcommandOptions> subcommand_options() {
  return options_of(subcommands());
}

Result<int> run(const CommandContext& context) {
  PENSTOCK_ASSIGN(const Subcommand* const subcommand,
                  find_subcommand("profile", subcommands(), context.positionals[0]));
  PENSTOCK_TRY(check_subcommand_options(subcommand->name, subcommand_options(), context.argv));
  return subcommand->run(context, context.positionals.subspan(1));
}

// What `export --to records` found in a session: two sessions of the same program did the same work.
constexpr std::string_view kFindings[] = {"session", "processes"};

}  // namespace

extern const CommandInfo command_profile;
const CommandInfo command_profile{
    .name = "profile",
    .summary = "what the I/O of any program does: every file, every byte, and how much of it was seen",
    .options = kOptions,
    .run = &run,
    .synopsis =
        "penstock profile run -- COMMAND | attach|detach PID | trace on|off | "
        "status|snapshot|serve|report|export|top PID|SESSION",
    .examples =
        {"penstock profile run -o session -- python train.py   # or 'attach PID -o session', while it runs",
         "penstock profile report session --by mount           # bytes, times and patterns, and the "
         "coverage"},
    .notes =
        "Exit codes: 'run' exits as COMMAND did. Else 0 done ('status': whether or not it is watched); 1 not "
        "now: no\n"
        "such process or session, another user's, stopped, under a debugger, watched already ('attach'), "
        "watched by\n"
        "nobody ('detach', 'trace', 'snapshot', 'serve', 'top'), no answer, or slots that hold something "
        "else\n"
        "('detach'); 2 wrong usage, or a program that takes no library (static, 32-bit, musl, in another "
        "container);\n"
        "77 a libc or a processor that cannot be attached to; 130 and 143 ended by Ctrl-C and SIGTERM "
        "('attach' has\n"
        "then detached again).",
    .arguments = "SUBCOMMAND ...",
    .min_arguments = 1,
    .max_arguments = INT_MAX,
    .subcommands = subcommand_options,
    .findings = kFindings,
    .metrics = session_metrics::kAll,
};

}  // namespace penstock
