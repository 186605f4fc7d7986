// The command `penstock profile SUBCOMMAND ...`, which records the I/O of any program.
#include <string_view>

#include "io_backends/core/cli/command.hpp"
#include "profiling/exporters/session_metrics.hpp"

namespace penstock {

const Registry<CommandInfo>& profile_registry();

// Parameters of the records of `export --to records` that do not describe the work. Two sessions of the same
// program did the same work, although these parameters differ.
constexpr std::string_view kFindings[] = {"session", "processes"};

extern const CommandInfo command_profile;
const CommandInfo command_profile{
    .name = "profile",
    .summary = "what the I/O of any program does: every file, every byte, and how much of it was seen",
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
    .subcommands = [] { return profile_registry().present(); },
    .findings = kFindings,
    .metrics = session_metrics::kAll,
};

}  // namespace penstock
