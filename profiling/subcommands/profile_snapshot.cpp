// `penstock profile snapshot PID|SESSION`: copies what was recorded so far, while the program continues.
#include <fmt/format.h>

#include <filesystem>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/cli/shell_quoting.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/live/session_snapshot.hpp"
#include "profiling/live/trace_window.hpp"
#include "profiling/session/process_number.hpp"
#include "profiling/session/session_files.hpp"
#include "profiling/subcommands/profile_arguments.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

Result<int> run_snapshot(const CommandContext& context) {
  const fs::path target = session_name_of(context.options);
  std::string source_text;
  if (is_process_number(context.positionals[0])) {
    PENSTOCK_ASSIGN(const int pid, process_number(context.positionals[0]));
    PENSTOCK_ASSIGN(const RecordingProcess process, recording_process(pid));
    PENSTOCK_TRY(snapshot_process(process, target));
    source_text = fmt::format("process {}", pid);
  } else {
    PENSTOCK_ASSIGN(const TraceTargets targets, trace_targets(context.positionals));
    PENSTOCK_TRY(snapshot_session(targets.folders[0], target));
    PENSTOCK_ASSIGN(const std::vector<RecordingProcess> running, recording_processes(targets.folders[0]));
    if (running.empty())
      note(fmt::format("no process of '{}' is running: the session is copied as it is",
                       context.positionals[0]));
    source_text = fmt::format("'{}'", context.positionals[0]);
  }
  if (context.output.json) {
    PENSTOCK_ASSIGN(const std::vector<fs::path> files, session_files(target));
    std::error_code failed;
    const fs::path absolute_path = fs::absolute(target, failed);
    if (failed) return errno_error(failed.value(), "cannot inspect the snapshot", target.string());
    print_json(Json{{"session", absolute_path.lexically_normal().string()},
                    {"of", context.positionals[0]},
                    {"files", files.size()}});
  } else {
    print_line(fmt::format("snapshot of {} written to '{}'; to show it: penstock profile report {}",
                           source_text, target.string(), shell_word(target.string())));
  }
  return 0;
}

constexpr OptionSpec kSnapshotOptions[] = {
    output_option("PATH", "the session's folder (default: penstock-profile-TIME-PID)"),
};

}  // namespace

extern const CommandInfo profile_snapshot;
const CommandInfo profile_snapshot{
    .name = "profile snapshot",
    .summary = "copy the profile so far, while the program continues",
    .options = kSnapshotOptions,
    .run = &run_snapshot,
    .synopsis = "penstock profile snapshot PID|SESSION [-o SESSION]",
    .examples = {"penstock profile snapshot 4711 -o now   # 'report now' shows it"},
    .arguments = "PID|SESSION",
};

}  // namespace penstock
