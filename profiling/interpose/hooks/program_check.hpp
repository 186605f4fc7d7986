// Finds out whether a program that is about to be executed can load this library. If it cannot, its name is
// recorded instead. If its loader would try and fail, the library is also removed from its LD_PRELOAD,
// because the loader might print an error or end the program.
//
// Threads: any thread that executes a program, also between fork and exec and in a vfork's child.
// Locks: none.
// Memory: 4 KiB on the caller's stack. Direct system calls only; getenv() reads the program's environment.
// Signals: a handler may use this, because it may execute a program.
#pragma once

namespace penstock::interpose {

class ExecutedProgram {
 public:
  // `path` begins at the directory `at`. "" is the file of the descriptor `at` itself.
  ExecutedProgram(int at, const char* path) noexcept;
  // Looks for `file` in the directories of PATH, as execvp() does.
  explicit ExecutedProgram(const char* file) noexcept;
  ExecutedProgram(const ExecutedProgram&) = delete;
  ExecutedProgram& operator=(const ExecutedProgram&) = delete;
  // The name to record; null if the program gave none.
  const char* path() const noexcept { return path_; }
  // False if the program cannot load this library: it is static, of another C library, of another processor
  // or of 32 bits, it gains rights (set-user-ID, set-group-ID, capabilities), or it is a script for such a
  // program. True if that is not known.
  bool is_watchable() const noexcept { return is_watchable_; }
  // Whether the library may be in LD_PRELOAD of the program. True also for a static program, which does not
  // read that variable: programs that it executes may load the library.
  bool keeps_preload() const noexcept { return keeps_preload_; }

 private:
  void set_loading(const char* path) noexcept;
  static constexpr unsigned kMostPathBytes = 4096;
  const char* path_;
  bool is_watchable_ = true;
  bool keeps_preload_ = true;
  char text_[kMostPathBytes];
};

}  // namespace penstock::interpose
