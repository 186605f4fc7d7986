#include "profiling/subcommands/program_check.hpp"

#include <elf.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <sys/xattr.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <optional>

#include "io_backends/core/system/fd.hpp"
#include "profiling/session/session_view.hpp"

namespace penstock {
namespace {

// The limit for scripts whose interpreter is a script again, and so on. The kernel has the same limit.
constexpr int kMostScriptDepth = 4;
constexpr size_t kMostProgramHeaders = 512;
#if defined(__aarch64__)
constexpr unsigned kOwnMachine = EM_AARCH64;
#else
constexpr unsigned kOwnMachine = EM_X86_64;
#endif

Error not_watchable(const std::string& program, std::string_view error) {
  return make_error(Errc::invalid_argument, "'{}' cannot be profiled: {}", program, error);
}

bool is_loader(std::string_view path) {
  const std::string_view name = base_name(path);
  return name.starts_with("ld-linux") || name.starts_with("ld.so") || name.starts_with("ld-2.");
}

// True for a program that gets more rights than its caller (setuid, setgid or capabilities). Such a program
// cannot be watched: the dynamic loader ignores LD_PRELOAD for it.
bool gains_rights(const std::string& program, const struct stat& status) {
  if ((status.st_mode & S_ISUID) != 0 && status.st_uid != ::geteuid()) return true;
  if ((status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 && status.st_gid != ::getegid())
    return true;
  return ::geteuid() != 0 && ::getxattr(program.c_str(), "security.capability", nullptr, 0) > 0;
}

std::string read_at(int fd, uint64_t offset, size_t bytes) {
  std::string text(bytes, '\0');
  const ssize_t read_bytes = retry_eintr([&] { return ::pread(fd, text.data(), bytes, off_t(offset)); });
  text.resize(read_bytes > 0 ? size_t(read_bytes) : 0);
  return text;
}

// The path of the loader that the program names if it is linked dynamically, else "". Absent if its headers
// are damaged.
std::optional<std::string> loader_of(int fd, const Elf64_Ehdr& elf_header) {
  std::string loader;
  if (elf_header.e_phentsize != sizeof(Elf64_Phdr)) return std::nullopt;
  for (size_t i = 0; i < elf_header.e_phnum && i < kMostProgramHeaders; ++i) {
    const std::string bytes = read_at(fd, elf_header.e_phoff + i * sizeof(Elf64_Phdr), sizeof(Elf64_Phdr));
    if (bytes.size() != sizeof(Elf64_Phdr)) return std::nullopt;
    Elf64_Phdr program_header{};
    std::memcpy(&program_header, bytes.data(), sizeof program_header);
    if (program_header.p_type != PT_INTERP || program_header.p_filesz == 0 || program_header.p_filesz > 4096)
      continue;
    const std::string path = read_at(fd, program_header.p_offset, program_header.p_filesz);
    loader = path.substr(0, path.find('\0'));
  }
  return loader;
}

Result<void> check_elf(const std::string& program, int fd, const std::string& first_bytes) {
  constexpr unsigned char kOwnElfClass = sizeof(void*) == 8 ? ELFCLASS64 : ELFCLASS32;
  if (static_cast<unsigned char>(first_bytes[EI_CLASS]) != kOwnElfClass)
    return not_watchable(program, "it is a 32-bit program, and the profiler's library is 64-bit");
  Elf64_Ehdr elf_header{};
  if (first_bytes.size() < sizeof elf_header)
    return make_error(Errc::permission_denied, "'{}' is not a program: it ends within its header", program);
  std::memcpy(&elf_header, first_bytes.data(), sizeof elf_header);
  if (elf_header.e_machine != kOwnMachine)
    return not_watchable(
        program, fmt::format("it is a program for another processor (ELF machine {}), not for this one",
                             elf_header.e_machine));
  const std::optional<std::string> loader = loader_of(fd, elf_header);
  if (!loader)
    return make_error(Errc::permission_denied, "'{}' is not a program: its headers are damaged", program);
  if (loader->empty() && is_loader(program)) return success();
  if (loader->empty())
    return not_watchable(program,
                         "it is linked statically, so it cannot load a library; link it dynamically, or use "
                         "the dynamically linked build that many systems also have");
  if (loader->find("ld-musl") != std::string::npos)
    return not_watchable(program, "it is linked against musl, and the profiler's library needs glibc");
  return success();
}

// Returns the interpreter of a script: "/usr/bin/env" for "#!/usr/bin/env python3". "" if the script names
// none.
std::string interpreter_of(const std::string& first_bytes) {
  const std::string line = first_bytes.substr(2, first_bytes.find('\n') - 2);
  const size_t from = line.find_first_not_of(" \t");
  if (from == std::string::npos) return "";
  return line.substr(from, line.find_first_of(" \t\r", from) - from);
}

Result<void> check_program(const std::string& program, int depth) {
  struct stat status {};
  if (::stat(program.c_str(), &status) != 0) return errno_error(errno, "cannot inspect", program);
  const bool has_more_rights = gains_rights(program, status);
  const Fd fd(retry_eintr([&] { return ::open(program.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK); }));
  // A program that may be executed but not read cannot be checked. It is accepted, unless its mode shows that
  // it runs with more rights than its caller.
  if (!fd)
    return has_more_rights
               ? Result<void>(not_watchable(program, "it runs with more privileges than its caller"))
               : success();
  const std::string first_bytes = read_at(fd.get(), 0, 512);
  if (first_bytes.starts_with("#!")) {
    const std::string interpreter = interpreter_of(first_bytes);
    return interpreter.empty() || depth == kMostScriptDepth ? success()
                                                            : check_program(interpreter, depth + 1);
  }
  if (!first_bytes.starts_with(ELFMAG))
    return make_error(Errc::permission_denied,
                      "'{}' is neither a program nor a script that names its interpreter", program);
  if (has_more_rights)
    return not_watchable(program,
                         "it runs with more privileges than its caller (setuid, setgid or capabilities), so "
                         "the system ignores LD_PRELOAD; run it as its owner, or run a copy without them");
  if (first_bytes.size() <= EI_CLASS) return success();
  return check_elf(program, fd.get(), first_bytes);
}

bool is_executable_file(const std::string& path, int& error) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    error = errno;
    return false;
  }
  if (S_ISREG(status.st_mode) && ::access(path.c_str(), X_OK) == 0) return true;
  error = EACCES;
  return false;
}

}  // namespace

Result<std::string> find_program(std::string_view word) {
  int error = ENOENT;
  if (word.find('/') != std::string_view::npos) {
    std::string path(word);
    if (is_executable_file(path, error)) return path;
    return errno_error(error, "cannot run", path);
  }
  const char* const path_variable = std::getenv("PATH");
  std::string_view rest = path_variable == nullptr ? "/usr/local/bin:/usr/bin:/bin" : path_variable;
  bool was_denied = false;
  while (!word.empty()) {
    const size_t colon = rest.find(':');
    const std::string_view folder = rest.substr(0, colon);
    std::string path = fmt::format("{}/{}", folder.empty() ? "." : folder, word);
    if (is_executable_file(path, error)) return path;
    // EACCES has two causes: the file may not be executed, or its folder may not be searched. Only the first
    // counts as denied; in the second case access() fails.
    was_denied = was_denied || (error == EACCES && ::access(path.c_str(), F_OK) == 0);
    if (colon == std::string_view::npos) break;
    rest = rest.substr(colon + 1);
  }
  if (was_denied) return errno_error(EACCES, "cannot run", word);
  return make_error(Errc::not_found, "program '{}' is not on PATH", word);
}

Result<void> check_watchable(const std::string& program) {
  return check_program(program, 0);
}

}  // namespace penstock
