// penstock profile attach PID | detach PID | status PID... | trace on|off PID | snapshot PID
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstddef>
#include <cstdio>
#include <fstream>
#include <system_error>

#include <nlohmann/json.hpp>

#include "io_backends/base/fd.hpp"
#include "io_backends/base/progress.hpp"
#include "profiling/attach/attach.hpp"
#include "profiling/attach/target.hpp"
#include "profiling/profile_verbs.hpp"
#include "profiling/session_folder.hpp"
#include "results/store.hpp"

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

Result<int> one_pid(ProfileNouns nouns, std::string_view verb) {
  if (nouns.size() != 1)
    return make_error(Errc::invalid_argument,
                      fmt::format("'{}' takes one PID: penstock profile {} 4711", verb, verb));
  return parse_pid(nouns[0]);
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

// Which words say how a process is watched.
std::string_view begun_words(std::uint32_t begun) {
  switch (begun) {
    case PENSTOCK_BEGUN_PROCESS:
      return "watched since it began";
    case PENSTOCK_BEGUN_ATTACHED:
      return "attached";
    case PENSTOCK_BEGUN_CALLED:
      return "in a window of its own";
    default:
      return "watched, between windows";
  }
}

struct Status {
  std::string how = "not watched";
  std::string folder;
  bool trace = false;
  std::int64_t since_ns = 0;
};
Status status_of(const Target& target) {
  Status status;
  if (const auto running = running_session(target.pid())) {
    status.how = begun_words(running->header.begun);
    status.folder = fs::path(running->file).parent_path().string();
    status.trace = (running->header.control & 1U) != 0;
    status.since_ns = running->header.begin_realtime_ns;
  } else if (target.has_library()) {
    status.how = "not watched: the library is loaded and lies idle";
  }
  return status;
}

// Copies one file of a session that goes on: what its header says was written by now is there.
Result<void> copy_session_file(const std::string& from, const fs::path& to) {
  const Fd in(retry_eintr([&] { return ::open(from.c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW); }));
  if (!in) return errno_error(errno, "cannot read", from);
  const fs::path fresh = to.parent_path() / fmt::format(".{}.tmp", to.filename().string());
  Fd out(retry_eintr([&] { return ::open(fresh.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600); }));
  if (!out) return errno_error(errno, "cannot write", to.string());
  const auto fail = [&](int why, std::string_view what, const std::string& which) {
    ::unlink(fresh.c_str());
    return errno_error(why, what, which);
  };
  std::vector<char> buffer(1 << 20);
  for (;;) {
    const ssize_t got = retry_eintr([&] { return ::read(in.get(), buffer.data(), buffer.size()); });
    if (got < 0) return fail(errno, "cannot read", from);
    if (got == 0) break;
    for (ssize_t done = 0; done < got;) {
      const ssize_t wrote = retry_eintr(
          [&] { return ::write(out.get(), buffer.data() + done, static_cast<std::size_t>(got - done)); });
      if (wrote <= 0) return fail(wrote < 0 ? errno : ENOSPC, "cannot write", to.string());
      done += wrote;
    }
  }
  if (const int failed = out.close(); failed != 0) return fail(failed, "cannot write", to.string());
  if (::rename(fresh.c_str(), to.c_str()) != 0) return fail(errno, "cannot write", to.string());
  return success();
}

Error not_watched(int pid) {
  return make_error(
      Errc::not_found,
      fmt::format("process {} is not watched, or is another user's: 'penstock profile attach {}' "
                  "does it",
                  pid, pid));
}

}  // namespace

Result<int> parse_pid(const std::string& word) {
  int pid = 0;
  const auto parsed = std::from_chars(word.data(), word.data() + word.size(), pid);
  if (parsed.ec != std::errc() || parsed.ptr != word.data() + word.size() || pid <= 0)
    return make_error(Errc::invalid_argument, fmt::format("'{}' is no process's number", word));
  return pid;
}

Result<int> profile_attach(const CommandContext& context, ProfileNouns nouns) {
  PENSTOCK_ASSIGN(const int pid, one_pid(nouns, "attach"));
  PENSTOCK_ASSIGN(const Target target, Target::look(pid));
  if (const auto running = running_session(pid))
    return make_error(Errc::already_exists, fmt::format("process {} is watched already: its session is '{}'",
                                                        pid, fs::path(running->file).parent_path().string()));
  PENSTOCK_ASSIGN(const std::string library, profile_library());
  PENSTOCK_ASSIGN(const fs::path folder, folder_for(target, context.options.text("output")));
  const bool trace = context.options.flag("trace");
  const Result<Attached> attached = attach_to(target, fs::weakly_canonical(library).string(), folder, trace);
  if (!attached.ok()) {
    ::rmdir(folder.c_str());  // nothing came of it, unless the process has begun a file there
    return attached.error();
  }
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

Result<int> profile_detach(const CommandContext& context, ProfileNouns nouns) {
  PENSTOCK_ASSIGN(const int pid, one_pid(nouns, "detach"));
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
    print(fmt::format("'penstock profile report {}' shows what was seen", detached.folder));
  }
  if (detached.unrestored != 0) {
    warn(fmt::format(
        "{} slots hold neither their first values nor ours: the program has rewritten them itself",
        detached.unrestored));
    return 1;
  }
  return 0;
}

Result<int> profile_status(const CommandContext& context, ProfileNouns nouns) {
  PENSTOCK_ASSIGN(const int pid, one_pid(nouns, "status"));
  PENSTOCK_ASSIGN(const Target target, Target::look(pid));
  const Status status = status_of(target);
  if (context.output.json) {
    print_json(Json{{"pid", pid},
                    {"name", target.name()},
                    {"watched", !status.folder.empty()},
                    {"how", status.how},
                    {"session", status.folder},
                    {"trace", status.trace},
                    {"since_ns", status.since_ns},
                    {"library_loaded", target.has_library()}});
    return 0;
  }
  std::string text = fmt::format("process {} ({}): {}", pid, target.name(), status.how);
  if (!status.folder.empty())
    text += fmt::format("; session '{}'{}", status.folder, status.trace ? ", every call is kept" : "");
  print(text);
  return 0;
}

Result<int> profile_trace(const CommandContext&, ProfileNouns nouns) {
  if (nouns.size() != 2 || (nouns[0] != "on" && nouns[0] != "off"))
    return make_error(Errc::invalid_argument,
                      "'trace' takes on or off, and one PID: penstock profile trace on 4711");
  PENSTOCK_ASSIGN(const int pid, parse_pid(nouns[1]));
  const auto running = running_session(pid);
  if (!running) return not_watched(pid);
  const Fd fd(retry_eintr([&] { return ::open(running->file.c_str(), O_WRONLY | O_CLOEXEC | O_NOFOLLOW); }));
  if (!fd) return errno_error(errno, "cannot write", running->file);
  const std::uint32_t control =
      nouns[0] == "on" ? running->header.control | 1U : running->header.control & ~1U;
  if (::pwrite(fd.get(), &control, sizeof control, offsetof(penstock_session_header, control)) !=
      static_cast<ssize_t>(sizeof control))
    return errno_error(errno, "cannot write", running->file);
  print(fmt::format("process {}: every call is {} from now on", pid,
                    nouns[0] == "on" ? "kept" : "only counted"));
  return 0;
}

Result<int> profile_snapshot(const CommandContext& context, ProfileNouns nouns) {
  PENSTOCK_ASSIGN(const int pid, one_pid(nouns, "snapshot"));
  const auto running = running_session(pid);
  if (!running) return not_watched(pid);
  const std::string& wanted = context.options.text("output");
  PENSTOCK_ASSIGN(const fs::path folder,
                  make_session_folder(wanted.empty() ? default_session_name() : wanted));
  const fs::path to = folder / fs::path(running->file).filename();
  if (const Result<void> copied = copy_session_file(running->file, to); !copied.ok()) {
    ::rmdir(folder.c_str());
    return copied.error();
  }
  print(fmt::format("what process {} did up to now is in '{}'; 'penstock profile report {}' shows it", pid,
                    folder.string(), folder.string()));
  return 0;
}

}  // namespace penstock
