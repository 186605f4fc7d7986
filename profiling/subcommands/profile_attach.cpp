// `penstock profile attach PID`: begins to record a program that already runs.
//
// Threads: only the command's main thread. There must be no other, because attach_to() forks a helper
// (remote_thread.hpp).
// Locks: none.
// Ctrl-C: while the command looks for a thread of the target, Ctrl-C ends the command with `interrupted`.
// After it has started a new thread in the target, the command first waits for that thread's answer. Then
// undo_attach() detaches again; Ctrl-C cannot interrupt this (IgnoreInterrupt).
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include "io_backends/core/cli/print.hpp"
#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "io_backends/core/utc_time.hpp"
#include "profiling/attach/attach.hpp"
#include "profiling/attach/target.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/subcommands/profile_arguments.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::vector<std::string> command_line_of(int pid) {
  std::vector<std::string> arguments;
  std::ifstream in(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  for (std::string word; arguments.size() < 1024 && std::getline(in, word, '\0');) arguments.push_back(word);
  return arguments;
}

// Creates the session's folder and gives it to the user of the target process, which will write there.
Result<fs::path> folder_for(const Target& target, const Options& options) {
  PENSTOCK_ASSIGN(fs::path folder, make_session_folder(session_name_of(options)));
  if (target.uid() != ::geteuid() && ::chown(folder.c_str(), target.uid(), target.gid()) != 0) {
    const int error = errno;
    ::rmdir(folder.c_str());
    return errno_error(error, fmt::format("cannot give process {} access to the session", target.pid()),
                       folder.string());
  }
  return folder;
}

// Detaches from the process again and removes the session. Called if the user asked to stop (Ctrl-C) but the
// attach was already complete. Returns false if detaching failed.
bool undo_attach(const Target& target, const fs::path& folder) {
  const std::atomic<bool> never_stop{false};
  const IgnoreInterrupt ignore_interrupt(never_stop);
  const auto detached = [&]() -> Result<AttachOutcome> {
    // the process is inspected again, because it has loaded the library since `target` was made
    PENSTOCK_ASSIGN(const Target current, Target::inspect(target.pid()));
    return detach_from(current);
  }();
  if (!detached.ok()) {
    warn(detached.error().message());
    return false;
  }
  std::error_code failed;
  fs::remove_all(folder, failed);  // the attach is undone, so its session is removed
  note(fmt::format("detached from process {}; its session was removed", target.pid()));
  return true;
}

Result<int> attach(const CommandContext& context) {
  PENSTOCK_ASSIGN(const int pid, parse_pid(context.positionals[0]));
  PENSTOCK_ASSIGN(const Target target, Target::inspect(pid));
  if (const auto running = running_session(pid))
    return make_error(Errc::already_exists, "process {} is already being profiled: its session is '{}'", pid,
                      fs::path(running->file).parent_path().string());
  if (const auto removed = removed_session(target))
    return make_error(Errc::already_exists, "process {} is already being profiled, but {}", pid,
                      session_gone_text(pid, *removed));
  PENSTOCK_ASSIGN(const std::string library, profile_library());
  PENSTOCK_ASSIGN(const auto trace_limit, trace_limit_of(context.options));
  PENSTOCK_ASSIGN(const fs::path folder, folder_for(target, context.options));
  const Result<AttachOutcome> attached = attach_to(target, fs::weakly_canonical(library).string(), folder,
                                                   context.options.flag("trace"), trace_limit);
  if (!attached.ok()) {
    // removes the folder only if it is empty: the process may have created a file there already
    ::rmdir(folder.c_str());
    return attached.error();
  }
  if (interrupted() && undo_attach(target, folder))
    return make_error(Errc::interrupted, "process {} is not attached", pid);
  update_note(folder, new_note(context.options, command_line_of(pid)));
  if (context.output.json) {
    print_json(Json{{"pid", pid},
                    {"session", folder.string()},
                    {"slots", attached->slots},
                    {"objects", attached->objects},
                    {"stopped_ms", attached->stopped_ms()}});
    return 0;
  }
  print_line(
      fmt::format("attached to process {} ({}): redirected {} function pointers in {} libraries; one thread "
                  "was stopped for {:.2f} ms",
                  pid, target.name(), attached->slots, attached->objects, attached->stopped_ms()));
  print_line(fmt::format("its session is '{}'; to end it: penstock profile detach {}", folder.string(), pid));
  return 0;
}

Result<int> run_attach(const CommandContext& context) {
  Result<int> code = attach(context);
  if (code.ok() && interrupted())
    warn(fmt::format(
        "process {} is attached, although the command was interrupted; to detach: penstock profile detach {}",
        context.positionals[0], context.positionals[0]));
  return code;
}

constexpr OptionSpec kAttachOptions[] = {
    output_option("PATH", "the session's folder (default: penstock-profile-TIME-PID)"),
    kIncludeOption,
    kExcludeOption,
    kTraceOption,
    kTraceLimitOption,
};

}  // namespace

extern const CommandInfo profile_attach;
const CommandInfo profile_attach{
    .name = "profile attach",
    .summary = "profile a program that is already running",
    .options = kAttachOptions,
    .run = &run_attach,
    .synopsis = "penstock profile attach PID [-o SESSION] [--trace]",
    .examples = {"penstock profile attach 4711 -o session   # 'profile detach 4711' ends it"},
    .arguments = "PID",
};

}  // namespace penstock
