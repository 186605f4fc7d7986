// Reads the first bytes of a program, and of its interpreter if it is a script. Each question that cannot be
// answered counts as "it can load the library": the exec fails by itself, or the program is as before.
#include "profiling/interpose/hooks/program_check.hpp"

#include <elf.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/statfs.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "profiling/interpose/writer/system.hpp"

namespace penstock::interpose {

namespace {

#if defined(__x86_64__)
constexpr unsigned kOwnMachine = EM_X86_64;
#else
constexpr unsigned kOwnMachine = EM_AARCH64;
#endif
constexpr unsigned kMostProgramHeaders = 512;
// The limit for scripts whose interpreter is a script again. The kernel has the same limit.
constexpr int kMostScriptDepth = 4;

// The loader ignores LD_PRELOAD in a program that gains rights.
bool gains_rights(const char* path) noexcept {
  struct stat status {};
  if (system_call(kStatOfName, AT_FDCWD, as_argument(path), as_argument(&status), 0) != 0) {
    return false;
  }
  const auto user = uid_t(system_call(SYS_geteuid));
  const bool changes_user = (status.st_mode & S_ISUID) != 0 && status.st_uid != user;
  const bool changes_group = (status.st_mode & S_ISGID) != 0 && (status.st_mode & S_IXGRP) != 0 &&
                             status.st_gid != gid_t(system_call(SYS_getegid));
  const bool has_capabilities =
      user != 0 && system_call(SYS_getxattr, as_argument(path), as_argument("security.capability"), 0, 0) > 0;
  if (!changes_user && !changes_group && !has_capabilities) {
    return false;
  }
  struct statfs mount {};
  return system_call(SYS_prctl, PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0) != 1 &&
         (system_call(SYS_statfs, as_argument(path), as_argument(&mount)) != 0 ||
          (mount.f_flags & ST_NOSUID) == 0);
}

// The library takes about 400 KiB of data and 1.3 MiB of addresses.
bool has_little_memory() noexcept {
  constexpr rlim_t kLeastData = 1 << 20;
  constexpr rlim_t kLeastAddresses = 5 << 20;
  const auto allows_less = [](int resource, rlim_t bytes) {
    struct rlimit limit {};
    return system_call(SYS_prlimit64, 0, resource, 0, as_argument(&limit)) == 0 && limit.rlim_cur < bytes;
  };
  return allows_less(RLIMIT_DATA, kLeastData) || allows_less(RLIMIT_AS, kLeastAddresses);
}

const char* base_name(const char* path) noexcept {
  const char* const slash = strrchr(path, '/');
  return slash == nullptr ? path : slash + 1;
}

bool is_glibc_loader(const char* path) noexcept {
  const char* const name = base_name(path);
  return strncmp(name, "ld-linux", 8) == 0 || strncmp(name, "ld.so", 5) == 0 ||
         strncmp(name, "ld-2.", 5) == 0 || strncmp(name, "ld-lsb", 6) == 0;
}

// Whether the ELF file names glibc's loader, or is that loader itself. A static program names none.
penstock_not_loaded not_loaded(long fd, const char* path, const Elf64_Ehdr& header) noexcept {
  for (unsigned i = 0; i < header.e_phnum && i < kMostProgramHeaders; ++i) {
    Elf64_Phdr program_header{};
    if (system_call(SYS_pread64, fd, as_argument(&program_header), sizeof(program_header),
                    long(header.e_phoff + uint64_t{i} * sizeof(program_header))) !=
        long(sizeof(program_header))) {
      return PENSTOCK_LOADED;
    }
    if (program_header.p_type == PT_INTERP) {
      char loader[256] = {};
      const long bytes = system_call(SYS_pread64, fd, as_argument(loader), sizeof(loader) - 1,
                                     long(program_header.p_offset));
      return bytes <= 0 || is_glibc_loader(loader) ? PENSTOCK_LOADED : PENSTOCK_OTHER_LIBC;
    }
  }
  return is_glibc_loader(path) ? PENSTOCK_LOADED : PENSTOCK_STATIC;
}

penstock_not_loaded not_loaded(const char* path, int depth) noexcept {
  if (gains_rights(path)) {
    return PENSTOCK_GAINS_RIGHTS;
  }
  const long fd =
      system_call(SYS_openat, AT_FDCWD, as_argument(path), O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
  if (fd < 0) {
    // The exec will fail and report the error, or the program may be executed but not read.
    return PENSTOCK_LOADED;
  }
  alignas(Elf64_Ehdr) char first_bytes[257] = {};
  const long bytes = system_call(SYS_pread64, fd, as_argument(first_bytes), sizeof(first_bytes) - 1, 0);
  penstock_not_loaded result = PENSTOCK_LOADED;
  if (bytes > 2 && first_bytes[0] == '#' && first_bytes[1] == '!') {
    const char* const begin = first_bytes + 2 + strspn(first_bytes + 2, " \t");
    first_bytes[begin - first_bytes + long(strcspn(begin, " \t\r\n"))] = 0;
    if (*begin != 0 && depth != kMostScriptDepth) {
      result = not_loaded(begin, depth + 1);
    }
  } else if (bytes > EI_CLASS && memcmp(first_bytes, ELFMAG, SELFMAG) == 0) {
    Elf64_Ehdr header{};
    memcpy(&header, first_bytes, sizeof(header));
    if (first_bytes[EI_CLASS] != ELFCLASS64) {
      result = PENSTOCK_OTHER_MACHINE;
    } else if (bytes >= long(sizeof(header))) {
      result = header.e_machine == kOwnMachine ? not_loaded(fd, path, header) : PENSTOCK_OTHER_MACHINE;
    }
  }
  system_call(SYS_close, fd);
  return result == PENSTOCK_LOADED && has_little_memory() ? PENSTOCK_LITTLE_MEMORY : result;
}

}  // namespace

ExecutedProgram::ExecutedProgram(int at, const char* path) noexcept : path_(path) {
  if (ReadableMemory memory; path == nullptr || !memory.has_text(path)) {
    return;
  }
  if (at == AT_FDCWD || path[0] == '/') {
    not_loaded_ = penstock::interpose::not_loaded(path, 0);
    return;
  }
  const int length =
      snprintf(text_, sizeof(text_), "/proc/self/fd/%d%s%s", at, path[0] == 0 ? "" : "/", path);
  if (length >= int(sizeof(text_))) {
    return;
  }
  not_loaded_ = penstock::interpose::not_loaded(text_, 0);
  char name[kMostPathBytes];
  const long bytes = path[0] != 0 ? -1
                                  : system_call(SYS_readlinkat, AT_FDCWD, as_argument(text_),
                                                as_argument(name), sizeof(name) - 1);
  if (bytes > 0) {
    memcpy(text_, name, size_t(bytes));
    text_[bytes] = 0;
    path_ = text_;
  }
}

ExecutedProgram::ExecutedProgram(const char* file) noexcept : path_(file) {
  if (file == nullptr || strchr(file, '/') != nullptr) {
    if (file != nullptr) {
      not_loaded_ = penstock::interpose::not_loaded(file, 0);
    }
    return;
  }
  const char* folders = getenv("PATH");
  for (const char* at = folders == nullptr ? "/bin:/usr/bin" : folders;; ++at) {
    const size_t folder_bytes = strcspn(at, ":");
    if (folder_bytes + 1 + strlen(file) + 1 <= sizeof(text_)) {
      memcpy(text_, at, folder_bytes);
      text_[folder_bytes] = '/';
      strcpy(text_ + (folder_bytes == 0 ? 0 : folder_bytes + 1), file);
      if (system_call(SYS_faccessat, AT_FDCWD, as_argument(text_), X_OK) == 0) {
        path_ = text_;
        not_loaded_ = penstock::interpose::not_loaded(text_, 0);
        return;
      }
    }
    at += folder_bytes;
    if (*at == 0) {
      return;
    }
  }
}

}  // namespace penstock::interpose
