// Finds out from /proc whether attaching to a process is possible, and the addresses in it that attaching
// needs.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "io_backends/core/result.hpp"
#include "profiling/attach/loaded_elf.hpp"
#include "profiling/session_abi.h"

namespace penstock {

struct TargetMapping {
  uint64_t begin = 0;
  uint64_t end = 0;
  bool writable = false;
  bool executable = false;
  uint64_t offset = 0;      // offset of `begin` in the mapped file
  std::string path;         // "" for memory without a file; without " (deleted)"
  bool is_removed = false;  // the file was deleted or renamed
};

class Target {
 public:
  // Errors: not_found: no such process. permission_denied: the process belongs to another user, or the system
  // forbids attaching (the message has a remedy). invalid_argument: the process cannot load the library (it
  // is static, 32-bit, uses musl, or has another root file system). busy: the process is stopped, or another
  // process traces it.
  static Result<Target> inspect(pid_t pid);

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }  // the kernel's name of the process (`comm`)
  uid_t uid() const { return uid_; }
  gid_t gid() const { return gid_; }
  const std::vector<TargetMapping>& mappings() const { return mappings_; }
  Result<void> reread_mappings();

  const TargetMapping* mapping_at(uint64_t address) const;
  bool is_libc_code(uint64_t address) const;  // true for code of libc, libpthread or libdl
  // Finds a function of libc, libpthread or libdl by its name.
  std::optional<LoadedSymbol> libc_function(std::string_view name) const;
  // Finds a symbol of libpenstock_profile.so; nullopt if the target has not loaded that library.
  std::optional<LoadedSymbol> library_symbol(std::string_view name) const;
  bool has_library() const;

  bool read(uint64_t address, void* to, size_t bytes) const;
  bool write(uint64_t address, const void* from, size_t bytes) const;
  ReadMemory reader() const;

  bool is_running() const;  // false once the process has ended, also if another process has its id now

 private:
  Result<void> check_program() const;

  pid_t pid_ = 0;
  std::string name_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  uint64_t process_start_ = 0;
  std::vector<TargetMapping> mappings_;
};

// The file of a session, with its header if the header was read.
struct SessionFile {
  std::string file;
  penstock_session_header header{};
};
// Returns the session to which the process writes. nullopt if it writes to none, or if this user may not
// inspect the process.
std::optional<SessionFile> running_session(pid_t pid);
// Returns the session to which the process writes, if the session's file was deleted: its header and its
// former name.
std::optional<SessionFile> removed_session(const Target& target);

// Returns the error for a target that was inspected and has ended since then.
Error ended_meanwhile(const Target& target);
// Returns the error for a process that the system does not let us trace. The error's message names the reason
// and a remedy.
Error not_traceable(pid_t pid, int sys_errno);

}  // namespace penstock
