// Inspects a target process through /proc, and reads and writes its memory.
//
// Threads: any thread, but only one thread at a time may use a Target. Most calls come from a command's main
// thread. The thread that updates the live page (profiling/serve/live_view.cpp) calls running_session().
// Locks: none.
// Memory: everything may allocate: this is penstock's own process.
// Ctrl-C: not checked here, because nothing here waits for the target. Only the kernel may delay a read of
// /proc.
// Target: only Target::write() changes it. All other functions only read /proc, the target's memory and the
// file of its session.
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

constexpr std::string_view kLibraryName = "libpenstock_profile.so";

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

// Parses /proc/PID/maps. The target may change its mappings meanwhile, so the result may be out of date.
// Errors: not_found if the process does not exist; the error of not_traceable() if this user may not read the
// file.
Result<std::vector<TargetMapping>> read_mappings(pid_t pid) {
  errno = 0;
  std::ifstream in(proc_path(pid, "maps"));
  if (!in)
    return errno == ENOENT ? make_error(Errc::not_found, "there is no process {}", pid)
                           : not_traceable(pid, errno);
  std::vector<TargetMapping> mappings;
  for (std::string line; std::getline(in, line);) {
    std::istringstream words(line);
    std::string range;
    std::string rights;
    std::string offset;
    std::string device;
    std::string inode;
    TargetMapping mapping;
    if (!(words >> range >> rights >> offset >> device >> inode) || rights.size() < 4) continue;
    const size_t dash = range.find('-');
    if (dash == std::string::npos) continue;
    std::from_chars(range.data(), range.data() + dash, mapping.begin, 16);
    std::from_chars(range.data() + dash + 1, range.data() + range.size(), mapping.end, 16);
    std::from_chars(offset.data(), offset.data() + offset.size(), mapping.offset, 16);
    mapping.writable = rights[1] == 'w';
    mapping.executable = rights[2] == 'x';
    std::getline(words >> std::ws, mapping.path);
    constexpr std::string_view kDeletedSuffix = " (deleted)";
    if (mapping.path.ends_with(kDeletedSuffix)) {
      mapping.path.resize(mapping.path.size() - kDeletedSuffix.size());
      mapping.is_removed = true;
    }
    mappings.push_back(std::move(mapping));
  }
  if (mappings.empty()) {
    if (::kill(pid, 0) != 0 && errno == ESRCH)
      return make_error(Errc::not_found, "there is no process {}", pid);
    // If this user may not inspect the process, the kernel returns an empty /proc/PID/maps.
    if (::access(proc_path(pid, "mem").c_str(), R_OK) != 0) return not_traceable(pid, errno);
  }
  return mappings;
}

// Returns the value of a field of /proc/PID/status, such as "Name:" or "Uid:"; "" if there is none.
std::string status_field(pid_t pid, std::string_view field) {
  std::ifstream in(proc_path(pid, "status"));
  for (std::string line; std::getline(in, line);)
    if (line.starts_with(field)) {
      const size_t value_begin = line.find_first_not_of(" \t", field.size());
      return value_begin == std::string::npos ? "" : line.substr(value_begin);
    }
  return "";
}

// Returns the user's name, or "user UID" if it is not known. Two threads may call this at the same time. So
// it uses getpwuid_r(), and not getpwuid(), which returns static memory. If the user's entry does not fit in
// the buffer, the name is not known.
std::string user_name(uid_t uid) {
  struct passwd entry {};
  struct passwd* found_entry = nullptr;
  std::array<char, 16384> buffer{};
  ::getpwuid_r(uid, &entry, buffer.data(), buffer.size(), &found_entry);
  return found_entry != nullptr ? found_entry->pw_name : fmt::format("user {}", uid);
}

Error not_attachable(pid_t pid, std::string_view why, Errc code = Errc::invalid_argument) {
  return make_error(code, "cannot attach to process {}: {}", pid, why);
}

bool is_running_session(const penstock_session_header& header, pid_t pid) {
  return std::memcmp(header.magic, PENSTOCK_SESSION_MAGIC, sizeof header.magic) == 0 &&
         header.state == PENSTOCK_RUNNING && header.pid == uint32_t(pid);
}

bool is_session_of(std::string_view path, pid_t pid) {
  return path.ends_with(PENSTOCK_SESSION_SUFFIX) && base_name(path).starts_with(fmt::format("{}-", pid));
}

}  // namespace

Error ended_meanwhile(const Target& target) {
  return make_error(Errc::not_found, "process {} has ended", target.pid());
}

Error not_traceable(pid_t pid, int sys_errno) {
  const std::string uid = status_field(pid, "Uid:");
  if (uid.empty()) return make_error(Errc::not_found, "there is no process {}", pid);
  const auto owner = static_cast<uid_t>(std::strtoul(uid.c_str(), nullptr, 10));
  if (sys_errno != EPERM && sys_errno != EACCES)
    return errno_error(sys_errno, "cannot attach to process", std::to_string(pid));
  if (::geteuid() != 0 && owner != ::geteuid())
    return make_error(Errc::permission_denied,
                      owner == 0 ? fmt::format("process {} belongs to root: only root may profile it", pid)
                                 : fmt::format("process {} belongs to {}: only {} and root may profile it",
                                               pid, user_name(owner), user_name(owner)));
  if (const std::string tracer = status_field(pid, "TracerPid:"); !tracer.empty() && tracer != "0")
    return make_error(
        Errc::busy,
        "cannot attach to process {}: process {} is tracing it (a debugger, strace); end that process first",
        pid, tracer);
  std::string scope;
  std::ifstream("/proc/sys/kernel/yama/ptrace_scope") >> scope;
  std::string why =
      "the system does not allow it; run the command as root (in a container: with CAP_SYS_PTRACE)";
  if (scope == "1" || scope == "2")
    why = fmt::format(
        "kernel.yama.ptrace_scope is {}; run the command as root, or set it to 0 ('sysctl -w "
        "kernel.yama.ptrace_scope=0')",
        scope);
  if (::geteuid() == 0)
    why =
        "the system forbids it even for root: this container lacks CAP_SYS_PTRACE, or a security module "
        "protects that process";
  if (scope == "3")
    why = "kernel.yama.ptrace_scope is 3, which forbids attaching until this machine restarts";
  return make_error(
      Errc::permission_denied,
      "cannot attach to process {}: {}; or start the program with 'penstock profile run -- COMMAND'", pid,
      why);
}

// Checks whether attaching is possible, and collects the target's mappings and libraries. During the checks
// the process may end, and another process may get its id. is_running() detects that later: it compares the
// time when the process started with process_start_.
Result<Target> Target::inspect(pid_t pid) {
  Target target;
  target.pid_ = pid;
  if (pid <= 0 || (::kill(pid, 0) != 0 && errno == ESRCH))
    return make_error(Errc::not_found, "there is no process {}", pid);
  if (pid == ::getpid()) return not_attachable(pid, "it is this command itself");
  if (::access(proc_path(pid, "status").c_str(), F_OK) != 0 && ::kill(pid, 0) == 0)
    return not_attachable(pid,
                          "/proc does not show it (it is not mounted, or belongs to another PID namespace)",
                          Errc::unsupported);
  const std::string thread_group = status_field(pid, "Tgid:");
  if (!thread_group.empty() && thread_group != std::to_string(pid))
    return not_attachable(pid, fmt::format("it is a thread of process {}; name that process", thread_group));
  target.name_ = status_field(pid, "Name:");
  target.process_start_ = process_start(uint32_t(pid));
  target.uid_ = static_cast<uid_t>(std::strtoul(status_field(pid, "Uid:").c_str(), nullptr, 10));
  target.gid_ = static_cast<gid_t>(std::strtoul(status_field(pid, "Gid:").c_str(), nullptr, 10));
  const std::string state = status_field(pid, "State:");
  if (state.starts_with("Z") || state.starts_with("X"))
    return make_error(Errc::not_found, "process {} has ended", pid);
  if (const std::string tracer = status_field(pid, "TracerPid:"); !tracer.empty() && tracer != "0")
    return not_traceable(pid, EPERM);
  if (state.starts_with("T") || state.starts_with("t"))
    return make_error(
        Errc::busy, "process {} is stopped and cannot answer: continue it first ('kill -CONT {}')", pid, pid);
  PENSTOCK_TRY(target.reread_mappings());
  PENSTOCK_TRY(target.check_program());
  return target;
}

Result<void> Target::check_program() const {
  if (mappings_.empty()) return not_attachable(pid_, "it is a kernel thread, or it is about to end");
  const Fd exe(retry_eintr([&] { return ::open(proc_path(pid_, "exe").c_str(), O_RDONLY | O_CLOEXEC); }));
  if (!exe) return not_traceable(pid_, errno);
  unsigned char begin[EI_NIDENT] = {};
  if (::pread(exe.get(), begin, sizeof begin, 0) == sizeof begin &&
      std::memcmp(begin, ELFMAG, SELFMAG) == 0 && begin[EI_CLASS] != ELFCLASS64)
    return not_attachable(pid_, "it is a 32-bit program, and the profiler's library is 64-bit");
  bool has_musl = false;
  bool has_libc = false;
  for (const TargetMapping& one : mappings_) {
    has_musl = has_musl || base_name(one.path).starts_with("ld-musl");
    has_libc = has_libc || is_libc(one.path);
  }
  if (has_musl) return not_attachable(pid_, "it runs on musl, and the profiler's library needs glibc");
  if (!has_libc)
    return not_attachable(
        pid_,
        "it is linked statically (as Go programs are), so it cannot load a library; link it dynamically");
  std::error_code error;
  const fs::path its_namespace = fs::read_symlink(proc_path(pid_, "ns/mnt"), error);
  const fs::path our_namespace = error ? its_namespace : fs::read_symlink("/proc/self/ns/mnt", error);
  const fs::path its_root = error ? fs::path("/") : fs::read_symlink(proc_path(pid_, "root"), error);
  if (its_namespace != our_namespace || (!error && its_root != "/"))
    return not_attachable(pid_,
                          "it runs in another file system (a container or chroot) that has neither the "
                          "library nor the session; run penstock inside it");
  return success();
}

Result<void> Target::reread_mappings() {
  PENSTOCK_ASSIGN(mappings_, read_mappings(pid_));
  return success();
}

const TargetMapping* Target::mapping_at(uint64_t address) const {
  const auto next_mapping =
      std::upper_bound(mappings_.begin(), mappings_.end(), address,
                       [](uint64_t wanted, const TargetMapping& one) { return wanted < one.begin; });
  if (next_mapping == mappings_.begin() || address >= std::prev(next_mapping)->end) return nullptr;
  return &*std::prev(next_mapping);
}

bool Target::is_libc_code(uint64_t address) const {
  const TargetMapping* const mapping = mapping_at(address);
  return mapping != nullptr && mapping->executable && is_libc_part(mapping->path);
}

std::optional<LoadedSymbol> Target::libc_function(std::string_view name) const {
  std::string_view last_path;
  for (const TargetMapping& mapping : mappings_) {
    if (!is_libc_part(mapping.path) || mapping.path == last_path || mapping.offset != 0) continue;
    last_path = mapping.path;
    const auto elf = LoadedElf::parse(reader(), mapping.begin);
    if (const auto found = elf ? elf->find(reader(), name) : std::nullopt) return found;
  }
  return std::nullopt;
}

std::optional<LoadedSymbol> Target::library_symbol(std::string_view name) const {
  for (const TargetMapping& one : mappings_) {
    if (base_name(one.path) != kLibraryName || one.offset != 0) continue;
    const auto elf = LoadedElf::parse(reader(), one.begin);
    return elf ? elf->find(reader(), name) : std::nullopt;
  }
  return std::nullopt;
}

bool Target::has_library() const {
  return std::any_of(mappings_.begin(), mappings_.end(),
                     [](const TargetMapping& one) { return base_name(one.path) == kLibraryName; });
}

// read() and write() make one system call each and do not stop the target. The target's threads may change
// the same bytes meanwhile.
bool Target::read(uint64_t address, void* to, size_t bytes) const {
  iovec local{to, bytes};
  iovec remote{reinterpret_cast<void*>(address), bytes};  // an address in the other process
  return ::process_vm_readv(pid_, &local, 1, &remote, 1, 0) == ssize_t(bytes);
}

bool Target::write(uint64_t address, const void* from, size_t bytes) const {
  iovec local{const_cast<void*>(from), bytes};            // NOLINT(*-const-cast)
  iovec remote{reinterpret_cast<void*>(address), bytes};  // NOLINT(performance-no-int-to-ptr)
  return ::process_vm_writev(pid_, &local, 1, &remote, 1, 0) == ssize_t(bytes);
}

ReadMemory Target::reader() const {
  return [this](uint64_t address, void* to, size_t bytes) { return read(address, to, bytes); };
}

bool Target::is_running() const {
  // A process that is about to end has no memory any more, and so no VmSize.
  return process_start(uint32_t(pid_)) == process_start_ && !status_field(pid_, "VmSize:").empty();
}

// Finds the session's file in the process's mappings, and reads the header from that file. The process may
// write to the header at the same time. Any thread may call this; it takes no lock.
std::optional<SessionFile> running_session(pid_t pid) {
  const auto mappings = read_mappings(pid);
  if (!mappings.ok()) return std::nullopt;
  std::set<std::string_view> checked_paths;  // a session's file may have several mappings
  for (const TargetMapping& one : *mappings) {
    if (!is_session_of(one.path, pid) || !checked_paths.insert(one.path).second) continue;
    SessionFile found{.file = one.path};
    std::ifstream in(one.path, std::ios::binary);
    if (in.read(reinterpret_cast<char*>(&found.header), sizeof found.header) &&
        is_running_session(found.header, pid))
      return found;
  }
  return std::nullopt;
}

// Reads the session's header from the target's memory, because the file was deleted.
std::optional<SessionFile> removed_session(const Target& target) {
  for (const TargetMapping& one : target.mappings()) {
    if (!one.is_removed || one.offset != 0 || !is_session_of(one.path, target.pid())) continue;
    SessionFile found{.file = one.path};
    if (target.read(one.begin, &found.header, sizeof found.header) &&
        is_running_session(found.header, target.pid()))
      return found;
  }
  return std::nullopt;
}

}  // namespace penstock
