// Reads about a target process in /proc, and reads and writes its memory.
//
// Threads: any thread. Most calls come from a command's main thread. The live view's inspecting thread calls
// running_session(). One thread at a time uses a Target.
// Locks: none.
// Memory: everything may allocate: this is penstock's own process.
// Ctrl-C: not checked here. Nothing waits for the target, except that the kernel may delay a read of /proc.
// Target: only Target::write() changes it. All other functions only read /proc, its memory and its session's
// file.
#include "profiling/attach/target.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <pwd.h>
#include <signal.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <set>
#include <sstream>

#include "io_backends/core/system/fd.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session_view.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

constexpr std::string_view kLibrary = "libpenstock_profile.so";

std::string proc_path(pid_t pid, std::string_view what) {
  return fmt::format("/proc/{}/{}", pid, what);
}

bool is_libc(std::string_view path) {
  const std::string_view name = base_name(path);
  return name == "libc.so.6" || (name.starts_with("libc-2.") && name.ends_with(".so"));
}
bool is_libc_part(std::string_view path) {
  const std::string_view name = base_name(path);
  return is_libc(path) || name.starts_with("libpthread.so.0") || name.starts_with("libpthread-2.") ||
         name.starts_with("libdl.so.2") || name.starts_with("libdl-2.");
}

// Parses /proc/PID/maps. The target may change its mappings during the read, so a line may be out of date.
// Errors: not_found if the process does not exist; those of not_traceable() if it may not be read.
Result<std::vector<TargetMapping>> read_mappings(pid_t pid) {
  errno = 0;
  std::ifstream in(proc_path(pid, "maps"));
  if (!in)
    return errno == ENOENT ? make_error(Errc::not_found, fmt::format("there is no process {}", pid))
                           : not_traceable(pid, errno);
  std::vector<TargetMapping> all;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string range;
    std::string rights;
    std::string offset;
    std::string device;
    std::string inode;
    TargetMapping one;
    if (!(words >> range >> rights >> offset >> device >> inode) || rights.size() < 4) continue;
    const std::size_t dash = range.find('-');
    if (dash == std::string::npos) continue;
    std::from_chars(range.data(), range.data() + dash, one.begin, 16);
    std::from_chars(range.data() + dash + 1, range.data() + range.size(), one.end, 16);
    std::from_chars(offset.data(), offset.data() + offset.size(), one.offset, 16);
    one.writable = rights[1] == 'w';
    one.executable = rights[2] == 'x';
    std::getline(words >> std::ws, one.path);
    constexpr std::string_view kDeleted = " (deleted)";
    if (one.path.ends_with(kDeleted)) {
      one.path.resize(one.path.size() - kDeleted.size());
      one.removed = true;
    }
    all.push_back(std::move(one));
  }
  if (all.empty()) {
    if (::kill(pid, 0) != 0 && errno == ESRCH)
      return make_error(Errc::not_found, fmt::format("there is no process {}", pid));
    // /proc/PID/maps of a process that we may not read is empty.
    if (::access(proc_path(pid, "mem").c_str(), R_OK) != 0) return not_traceable(pid, errno);
  }
  return all;
}

// The value of a field ("Name:", "Uid:" ...) in /proc/PID/status.
std::string status_field(pid_t pid, std::string_view field) {
  std::ifstream in(proc_path(pid, "status"));
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field)) {
      const std::size_t from = line.find_first_not_of(" \t", field.size());
      return from == std::string::npos ? "" : line.substr(from);
    }
  return "";
}

// getpwuid_r(), because the live view's inspecting thread may call this too. An entry that does not fit in
// the buffer counts as unknown.
std::string user_name(uid_t uid) {
  struct passwd entry {};
  struct passwd* known = nullptr;
  std::array<char, 16384> texts{};
  ::getpwuid_r(uid, &entry, texts.data(), texts.size(), &known);
  return known != nullptr ? known->pw_name : fmt::format("user {}", uid);
}

Error not_attachable(pid_t pid, std::string_view why, Errc code = Errc::invalid_argument) {
  return make_error(code, fmt::format("cannot attach to process {}: {}", pid, why));
}

bool is_running_session(const penstock_session_header& header, pid_t pid) {
  return std::memcmp(header.magic, PENSTOCK_SESSION_MAGIC, sizeof header.magic) == 0 &&
         header.state == PENSTOCK_RUNNING && header.pid == static_cast<std::uint32_t>(pid);
}

bool is_session_of(std::string_view path, pid_t pid) {
  return path.ends_with(PENSTOCK_SESSION_SUFFIX) && base_name(path).starts_with(fmt::format("{}-", pid));
}

}  // namespace

Error ended_meanwhile(const Target& target) {
  return make_error(Errc::not_found, fmt::format("process {} has ended meanwhile", target.pid()));
}

Error not_traceable(pid_t pid, int sys_errno) {
  const std::string uid = status_field(pid, "Uid:");
  if (uid.empty()) return make_error(Errc::not_found, fmt::format("there is no process {}", pid));
  const auto owner = static_cast<uid_t>(std::strtoul(uid.c_str(), nullptr, 10));
  if (sys_errno != EPERM && sys_errno != EACCES)
    return errno_error(sys_errno, "cannot attach to process", std::to_string(pid));
  if (::geteuid() != 0 && owner != ::geteuid())
    return make_error(Errc::permission_denied,
                      owner == 0 ? fmt::format("process {} is root's: only root may watch it", pid)
                                 : fmt::format("process {} is {}'s: only {} and root may watch it", pid,
                                               user_name(owner), user_name(owner)));
  if (const std::string tracer = status_field(pid, "TracerPid:"); !tracer.empty() && tracer != "0")
    return make_error(Errc::busy, fmt::format("cannot attach to process {}: process {} is tracing it (a "
                                              "debugger, strace); end that first",
                                              pid, tracer));
  std::string scope;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  std::string why =
      "the system does not allow it; do it as root (in a container: one that was given "
      "CAP_SYS_PTRACE)";
  if (scope == "1" || scope == "2")
    why = fmt::format(
        "kernel.yama.ptrace_scope is {}; do it as root, or set it to 0 ('sysctl -w "
        "kernel.yama.ptrace_scope=0')",
        scope);
  if (::geteuid() == 0)
    why =
        "the system does not allow it, not even to root: this container was given no CAP_SYS_PTRACE, or a "
        "security module protects that process";
  if (scope == "3") why = "kernel.yama.ptrace_scope is 3: nobody may, until this machine starts anew";
  return make_error(
      Errc::permission_denied,
      fmt::format("cannot attach to process {}: {}; or begin the program with 'penstock profile "
                  "run'",
                  pid, why));
}

// Reads only /proc, so the process may end between two of these checks. Whether its id was given to another
// process meanwhile is checked by is_running(), which compares start_.
Result<Target> Target::inspect(pid_t pid) {
  Target target;
  target.pid_ = pid;
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH))
    return make_error(Errc::not_found, fmt::format("there is no process {}", pid));
  if (pid == ::getpid()) return not_attachable(pid, "that is this command itself");
  const std::string group = status_field(pid, "Tgid:");
  if (!group.empty() && group != std::to_string(pid))
    return not_attachable(pid, fmt::format("that is a thread of process {}; name that", group));
  target.name_ = status_field(pid, "Name:");
  target.start_ = process_start(static_cast<std::uint32_t>(pid));
  target.uid_ = static_cast<uid_t>(std::strtoul(status_field(pid, "Uid:").c_str(), nullptr, 10));
  target.gid_ = static_cast<gid_t>(std::strtoul(status_field(pid, "Gid:").c_str(), nullptr, 10));
  const std::string state = status_field(pid, "State:");
  if (state.starts_with("Z") || state.starts_with("X"))
    return make_error(Errc::not_found, fmt::format("process {} has ended", pid));
  if (const std::string tracer = status_field(pid, "TracerPid:"); !tracer.empty() && tracer != "0")
    return not_traceable(pid, EPERM);
  if (state.starts_with("T") || state.starts_with("t"))
    return make_error(
        Errc::busy, fmt::format("process {} is stopped, and would do nothing that it is asked: let it go on "
                                "first ('kill -CONT {}')",
                                pid, pid));
  PENSTOCK_TRY(target.refresh());
  PENSTOCK_TRY(target.check_kind());
  return target;
}

Result<void> Target::check_kind() const {
  if (mappings_.empty()) return not_attachable(pid_, "it is the kernel's own, or about to end");
  const Fd exe(retry_eintr([&] { return ::open(proc_path(pid_, "exe").c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!exe) return not_traceable(pid_, errno);
  unsigned char begin[EI_NIDENT] = {};
  if (::pread(exe.get(), begin, sizeof begin, 0) == sizeof begin &&
      std::memcmp(begin, ELFMAG, SELFMAG) == 0 && begin[EI_CLASS] != ELFCLASS64)
    return not_attachable(pid_, "it is a 32-bit program, and the library for it is a 64-bit one");
  bool musl = false;
  bool libc = false;
  for (const TargetMapping& one : mappings_) {
    musl = musl || base_name(one.path).starts_with("ld-musl");
    libc = libc || is_libc(one.path);
  }
  if (musl) return not_attachable(pid_, "it runs on musl, and the library for it needs glibc");
  if (!libc)
    return not_attachable(pid_,
                          "it has no libc.so of its own (a static program, or Go), so that there is "
                          "nothing to load a library with; build it dynamically");
  std::error_code failed;
  const fs::path theirs = fs::read_symlink(proc_path(pid_, "ns/mnt"), failed);
  const fs::path ours = failed ? theirs : fs::read_symlink("/proc/self/ns/mnt", failed);
  const fs::path root = failed ? fs::path("/") : fs::read_symlink(proc_path(pid_, "root"), failed);
  if (theirs != ours || (!failed && root != "/"))
    return not_attachable(pid_,
                          "it lives in another file system (a container, or chroot), where neither the "
                          "library nor the session can be found; run penstock in there");
  return success();
}

Result<void> Target::refresh() {
  PENSTOCK_ASSIGN(mappings_, read_mappings(pid_));
  return success();
}

const TargetMapping* Target::mapping_at(std::uint64_t address) const {
  const auto after =
      std::upper_bound(mappings_.begin(), mappings_.end(), address,
                       [](std::uint64_t at, const TargetMapping& one) { return at < one.begin; });
  if (after == mappings_.begin() || address >= std::prev(after)->end) return nullptr;
  return &*std::prev(after);
}

bool Target::is_libc_code(std::uint64_t address) const {
  const TargetMapping* const at = mapping_at(address);
  return at != nullptr && at->executable && is_libc_part(at->path);
}

std::optional<LoadedSymbol> Target::libc_function(std::string_view name) const {
  std::string_view last;
  for (const TargetMapping& one : mappings_) {
    if (!is_libc_part(one.path) || one.path == last || one.offset != 0) continue;
    last = one.path;
    const auto elf = LoadedElf::at(reader(), one.begin);
    if (const auto found = elf ? elf->find(reader(), name) : std::nullopt) return found;
  }
  return std::nullopt;
}

std::optional<LoadedSymbol> Target::library_symbol(std::string_view name) const {
  for (const TargetMapping& one : mappings_) {
    if (base_name(one.path) != kLibrary || one.offset != 0) continue;
    const auto elf = LoadedElf::at(reader(), one.begin);
    return elf ? elf->find(reader(), name) : std::nullopt;
  }
  return std::nullopt;
}

bool Target::has_library() const {
  return std::any_of(mappings_.begin(), mappings_.end(),
                     [](const TargetMapping& one) { return base_name(one.path) == kLibrary; });
}

// One system call each; the target is not stopped. Other threads of it may change the bytes meanwhile.
bool Target::read(std::uint64_t address, void* to, std::size_t bytes) const {
  iovec here{to, bytes};
  iovec there{reinterpret_cast<void*>(address), bytes};  // an address in the other process
  return ::process_vm_readv(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

bool Target::write(std::uint64_t address, const void* from, std::size_t bytes) const {
  iovec here{const_cast<void*>(from), bytes};            // NOLINT(*-const-cast)
  iovec there{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_writev(pid_, &here, 1, &there, 1, 0) == static_cast<ssize_t>(bytes);
}

ReadMemory Target::reader() const {
  return [this](std::uint64_t address, void* to, std::size_t bytes) { return read(address, to, bytes); };
}

bool Target::is_running() const {
  // A process that is about to end has no memory any more.
  return process_start(static_cast<std::uint32_t>(pid_)) == start_ && !status_field(pid_, "VmSize:").empty();
}

// Finds the file in the process's mappings, and reads its header from the file. In any thread, without a
// lock. The header may change at any time, because the process writes it.
std::optional<SessionFile> running_session(pid_t pid) {
  const auto mappings = read_mappings(pid);
  if (!mappings.ok()) return std::nullopt;
  std::set<std::string_view> seen;  // a session's file has several mappings
  for (const TargetMapping& one : *mappings) {
    if (!is_session_of(one.path, pid) || !seen.insert(one.path).second) continue;
    SessionFile found{.file = one.path};
    std::ifstream in(one.path, std::ios::binary);
    if (in.read(reinterpret_cast<char*>(&found.header), sizeof found.header) &&
        is_running_session(found.header, pid))
      return found;
  }
  return std::nullopt;
}

// Reads the header from the target's memory, because the file was deleted.
std::optional<SessionFile> removed_session(const Target& target) {
  for (const TargetMapping& one : target.mappings()) {
    if (!one.removed || one.offset != 0 || !is_session_of(one.path, target.pid())) continue;
    SessionFile found{.file = one.path};
    if (target.read(one.begin, &found.header, sizeof found.header) &&
        is_running_session(found.header, target.pid()))
      return found;
  }
  return std::nullopt;
}

}  // namespace penstock
