// Finds out whether a program that is about to be executed can load this library. If it cannot, its name is
// recorded instead. If its loader would try and fail, the library is also removed from its LD_PRELOAD,
// because the loader might print an error or end the program.
//
// Threads: any thread that executes a program, also between fork and exec and in a vfork's child.
// Locks: none.
// Memory: 4 KiB on the caller's stack. Direct system calls only; getenv() reads the program's environment.
// Signals: a handler may use this, because it may execute a program.
#pragma once

#include "profiling/process_abi.h"

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
  // Why the program, or the interpreter of a script, cannot load this library.
  penstock_not_loaded not_loaded() const noexcept { return not_loaded_; }
  // Whether the library may be in LD_PRELOAD of the program. True also for a static program, which does not
  // read that variable: programs that it executes may load the library.
  bool keeps_preload() const noexcept {
    return not_loaded_ == PENSTOCK_LOADED || not_loaded_ == PENSTOCK_STATIC;
  }

 private:
  static constexpr unsigned kMostPathBytes = 4096;
  const char* path_;
  penstock_not_loaded not_loaded_ = PENSTOCK_LOADED;
  char text_[kMostPathBytes];
};

}  // namespace penstock::interpose
