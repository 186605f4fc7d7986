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
    .summary = "record all file I/O of any program, per file, and report how complete the record is",
    .synopsis =
        "penstock profile run -- COMMAND | attach|detach PID | trace on|off | "
        "status|snapshot|serve|report|export|top PID|SESSION",
    .examples =
        {"penstock profile run -o session -- python train.py   # or 'attach PID -o session', while it runs",
         "penstock profile report session --by mount           # bytes, times and patterns, and the "
         "coverage"},
    .notes =
        "Exit codes: 'run' exits as COMMAND did. The others exit with 0 when done; 1 when it is not possible "
        "now (no such\nprocess or session, another user's process, stopped, under a debugger, already "
        "profiled, not profiled, no\nanswer, or function pointers that the program changed itself); 2 for "
        "wrong usage, or for a program that cannot\nload the library (static, 32-bit, musl, in another "
        "container); 77 when this libc or processor does not allow\nattaching; 130 and 143 after Ctrl-C and "
        "SIGTERM ('attach' then detaches). 'status' exits with 0 whether or not\nthe process is profiled.",
    .arguments = "SUBCOMMAND ...",
    .subcommands = [] { return profile_registry().present(); },
    .findings = kFindings,
    .metrics = session_metrics::kAll,
};

}  // namespace penstock
