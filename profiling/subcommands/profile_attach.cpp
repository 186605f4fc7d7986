// penstock profile attach PID | detach PID
#include <fmt/format.h>
#include <unistd.h>

#include <atomic>
#include <cerrno>
#include <cstdio>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "io_backends/core/cli/progress.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "profiling/attach/attach.hpp"
#include "profiling/attach/target.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/session/process_number.hpp"
#include "profiling/session/session_folder.hpp"
#include "profiling/subcommands/profile_subcommands.hpp"
#include "results/record/store.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

double milliseconds(std::chrono::nanoseconds time) {
  return static_cast<double>(time.count()) / 1e6;
}

void print_json(const Json& object) {
  const std::string line = object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  std::fwrite(line.data(), 1, line.size(), stdout);
}
void print(std::string_view text) {
  const std::string line = fmt::format("{}\n", text);
  std::fwrite(line.data(), 1, line.size(), stdout);
}

Result<int> one_pid(ProfileArguments arguments, std::string_view subcommand) {
  if (arguments.size() != 1)
    return make_error(Errc::invalid_argument,
                      fmt::format("'{}' takes one PID: penstock profile {} 4711", subcommand, subcommand));
  if (std::error_code failed; fs::is_directory(arguments[0], failed))
    return make_error(Errc::invalid_argument,
                      fmt::format("'{}' takes one PID, and '{}' is a folder; if it is a session, 'penstock "
                                  "profile status {}' names its processes",
                                  subcommand, arguments[0], arguments[0]));
  return process_number(arguments[0]);
}

std::vector<std::string> command_of(int pid) {
  std::vector<std::string> words;
  std::ifstream in(fmt::format("/proc/{}/cmdline", pid), std::ios::binary);
  for (std::string word; words.size() < 1024 && std::getline(in, word, '\0');) words.push_back(word);
  return words;
}

// The other process writes there, as its owner.
Result<fs::path> folder_for(const Target& target, const std::string& wanted) {
  PENSTOCK_ASSIGN(fs::path folder, make_session_folder(wanted.empty() ? default_session_name() : wanted));
  if (target.uid() != ::geteuid() && ::chown(folder.c_str(), target.uid(), target.gid()) != 0) {
    const int why = errno;
    ::rmdir(folder.c_str());
    return errno_error(why, fmt::format("cannot give to process {} the session", target.pid()),
                       folder.string());
  }
  return folder;
}

// We were told to stop, and the other process has done what it was asked for. False: it could not be taken
// back.
bool undo(const Target& target, const fs::path& folder) {
  const std::atomic<bool> over{false};
  const WorkOn to_the_end(over);
  const auto detached = [&]() -> Result<Detached> {
    PENSTOCK_ASSIGN(const Target now, Target::look(target.pid()));  // it has the library since then
    return detach_from(now);
  }();
  if (!detached.ok()) {
    warn(detached.error().message());
    return false;
  }
  std::error_code failed;
  fs::remove_all(folder, failed);  // it was empty
  note(fmt::format("process {} was detached from again, and no session is left of it", target.pid()));
  return true;
}

Result<int> attach(const CommandContext& context, ProfileArguments arguments) {
  PENSTOCK_ASSIGN(const int pid, one_pid(arguments, "attach"));
  PENSTOCK_ASSIGN(const Target target, Target::look(pid));
  if (const auto running = running_session(pid))
    return make_error(Errc::already_exists, fmt::format("process {} is watched already: its session is '{}'",
                                                        pid, fs::path(running->file).parent_path().string()));
  if (const auto removed = removed_session(target))
    return make_error(Errc::already_exists, fmt::format("process {} is watched already, but {}", pid,
                                                        session_gone_text(pid, *removed)));
  PENSTOCK_ASSIGN(const std::string library, profile_library());
  const bool trace = context.options.flag("trace");
  PENSTOCK_ASSIGN(const auto trace_limit, trace_limit_of(context.options));
  PENSTOCK_ASSIGN(const fs::path folder, folder_for(target, context.options.text("output")));
  const Result<Attached> attached =
      attach_to(target, fs::weakly_canonical(library).string(), folder, {.on = trace, .limit = trace_limit});
  if (!attached.ok()) {
    ::rmdir(folder.c_str());  // nothing came of it, unless the process has started a file there
    return attached.error();
  }
  if (interrupted() && undo(target, folder))
    return make_error(Errc::interrupted, fmt::format("process {} is not attached", pid));
  const SessionNote note{.command = command_of(pid),
                         .include = context.options.texts("include"),
                         .exclude = context.options.texts("exclude"),
                         .trace = trace,
                         .started = utc_now(),
                         .ended = "",
                         .exit_code = -1};
  if (const Result<void> noted = write_note(folder, note); !noted.ok()) warn(noted.error().message());
  if (context.output.json) {
    print_json(Json{{"pid", pid},
                    {"session", folder.string()},
                    {"slots", attached->slots},
                    {"objects", attached->objects},
                    {"stopped_ms", milliseconds(attached->stopped)}});
    return 0;
  }
  print(fmt::format(
      "attached to process {} ({}): {} slots in {} objects lead to the profiler; one thread was stopped "
      "for {:.2f} ms",
      pid, target.name(), attached->slots, attached->objects, milliseconds(attached->stopped)));
  print(fmt::format("its session is '{}'; 'penstock profile detach {}' ends it", folder.string(), pid));
  return 0;
}

}  // namespace

Result<int> profile_attach(const CommandContext& context, ProfileArguments arguments) {
  Result<int> code = attach(context, arguments);
  if (code.ok() && interrupted())
    warn(fmt::format("process {} is attached nevertheless: 'penstock profile detach {}' ends it",
                     arguments[0], arguments[0]));
  return code;
}

Result<int> profile_detach(const CommandContext& context, ProfileArguments arguments) {
  PENSTOCK_ASSIGN(const int pid, one_pid(arguments, "detach"));
  PENSTOCK_ASSIGN(const Target target, Target::look(pid));
  PENSTOCK_ASSIGN(const Detached detached, detach_from(target));
  SessionNote note = read_note(detached.folder);
  if (!note.started.empty()) {
    note.ended = utc_now();
    if (const Result<void> noted = write_note(detached.folder, note); !noted.ok())
      warn(noted.error().message());
  }
  if (context.output.json) {
    print_json(Json{{"pid", pid},
                    {"session", detached.folder},
                    {"slots_restored", detached.slots},
                    {"slots_unrestored", detached.unrestored},
                    {"slots_unloaded", detached.unloaded},
                    {"objects", detached.objects},
                    {"stopped_ms", milliseconds(detached.stopped)}});
  } else {
    print(fmt::format(
        "detached from process {} ({}): {} slots in {} objects hold their first values again{}; one "
        "thread was stopped for {:.2f} ms",
        pid, target.name(), detached.slots, detached.objects,
        detached.unloaded != 0 ? fmt::format(", {} went with their objects", detached.unloaded) : "",
        milliseconds(detached.stopped)));
    std::error_code failed;
    print(fs::is_directory(detached.folder, failed)
              ? fmt::format("'penstock profile report {}' shows what was seen", detached.folder)
              : fmt::format("its session '{}' was removed meanwhile: nothing is left of what was seen",
                            detached.folder));
  }
  if (detached.unrestored != 0) {
    warn(fmt::format(
        "{} slots hold neither their first values nor ours: the program has rewritten them itself",
        detached.unrestored));
    return 1;
  }
  return 0;
}

}  // namespace penstock
