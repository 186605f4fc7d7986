// The process to attach to, looked at from outside through /proc: whether it can be done at all, and where in
// it things are.
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
  std::uint64_t begin = 0;
  std::uint64_t end = 0;
  bool writable = false;
  bool executable = false;
  std::uint64_t offset = 0;  // in its file
  std::string path;          // "" for memory of no file; without " (deleted)"
  bool removed = false;      // its file has that name no more
};

class Target {
 public:
  // not_found: no such process; permission_denied: another user's, or the system forbids it (with what to
  // do); invalid_argument: one that takes no library (static, 32 bits, musl, another file system's root);
  // busy: one that is stopped or traced by somebody else.
  static Result<Target> look(pid_t pid);

  pid_t pid() const { return pid_; }
  const std::string& name() const { return name_; }  // as the kernel calls it
  uid_t uid() const { return uid_; }
  gid_t gid() const { return gid_; }
  const std::vector<TargetMapping>& mappings() const { return mappings_; }
  Result<void> refresh();  // its mappings

  const TargetMapping* mapping_at(std::uint64_t address) const;
  bool is_libc_code(std::uint64_t address) const;  // of libc or its thread library
  // A function of libc's, of its thread library or of its loader library.
  std::optional<LoadedSymbol> libc_function(std::string_view name) const;
  // Of libpenstock_profile.so; nothing where it is not loaded.
  std::optional<LoadedSymbol> library_symbol(std::string_view name) const;
  bool has_library() const;

  bool read(std::uint64_t address, void* to, std::size_t bytes) const;
  bool write(std::uint64_t address, const void* from, std::size_t bytes) const;
  ReadMemory reader() const;

  bool lives() const;  // and is the same process still

 private:
  Result<void> check_kind() const;

  pid_t pid_ = 0;
  std::string name_;
  uid_t uid_ = 0;
  gid_t gid_ = 0;
  std::uint64_t start_ = 0;
  std::vector<TargetMapping> mappings_;
};

// A session's file, with its header when that was read.
struct FoundSession {
  std::string file;
  penstock_session_header header{};
};
// The one that a process writes to; nothing where it is not watched, or may not be looked at.
std::optional<FoundSession> running_session(pid_t pid);
// Of a process that is watched and whose session was removed under it: the header, and which file it was.
std::optional<FoundSession> removed_session(const Target& target);

// It was there when it was looked at.
Error ended_meanwhile(const Target& target);
// Why the system does not let us trace it, and what to do about that.
Error not_traceable(pid_t pid, int sys_errno);

}  // namespace penstock
