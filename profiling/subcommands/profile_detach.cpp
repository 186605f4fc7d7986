// `penstock profile detach PID`: ends the recording that an attach began. The program continues.
#include <fmt/format.h>

#include <filesystem>
#include <system_error>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "io_backends/core/utc_time.hpp"
#include "profiling/attach/attach.hpp"
#include "profiling/attach/target.hpp"
#include "profiling/subcommands/profile_arguments.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

Result<int> run_detach(const CommandContext& context) {
  PENSTOCK_ASSIGN(const int pid, parse_pid(context.positionals[0]));
  PENSTOCK_ASSIGN(const Target target, Target::inspect(pid));
  PENSTOCK_ASSIGN(const AttachOutcome detached, detach_from(target));
  SessionNote note = read_note(detached.folder);
  if (!note.started.empty()) {
    note.ended = utc_now();
    update_note(detached.folder, note);
  }
  if (context.output.json) {
    print_json(Json{{"pid", pid},
                    {"session", detached.folder},
                    {"slots_restored", detached.slots},
                    {"slots_unrestored", detached.unrestored},
                    {"slots_unloaded", detached.unloaded},
                    {"objects", detached.objects},
                    {"stopped_ms", detached.stopped_ms()}});
  } else {
    print_line(fmt::format(
        "detached from process {} ({}): restored {} function pointers in {} libraries{}; one thread was "
        "stopped for {:.2f} ms",
        pid, target.name(), detached.slots, detached.objects,
        detached.unloaded != 0
            ? fmt::format(" ({} more were in libraries that have been unloaded)", detached.unloaded)
            : "",
        detached.stopped_ms()));
    std::error_code failed;
    print_line(fs::is_directory(detached.folder, failed)
                   ? "to show the profile: penstock profile report " + shell_word(detached.folder)
                   : fmt::format("its session '{}' was removed: there is nothing to show", detached.folder));
  }
  if (detached.unrestored != 0) {
    warn(fmt::format("{} function pointers were not restored: the program changed them itself",
                     detached.unrestored));
    return 1;
  }
  return 0;
}

}  // namespace

extern const CommandInfo profile_detach;
const CommandInfo profile_detach{
    .name = "profile detach",
    .summary = "end an attach; the program continues as before",
    .run = &run_detach,
    .synopsis = "penstock profile detach PID",
    .examples = {"penstock profile detach 4711   # keeps the session"},
    .arguments = "PID",
};

}  // namespace penstock
