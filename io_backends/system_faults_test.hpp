// For tests only: makes system calls fail, be short or be interrupted. The test program defines the functions
// for these calls itself (system_faults_test.cpp), so the linker prefers them to those of the libraries. They
// inject faults only while an InjectedFaults exists, and only on its thread.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace penstock {

enum class Call : uint8_t {
  open,           // openat() of a file with a name
  open_nameless,  // openat() with O_TMPFILE
  read,           // read, pread, preadv
  write,          // pwrite, pwritev
  linkat,
  renameat,
  renameat2,
  fdatasync,
  fsync,
  fallocate,
  lock,     // fcntl() with F_OFD_SETLK
  fadvise,  // no faults: these calls are only counted
  close,
  ring_submit,  // io_uring_submit, of liburing
  count,
};

// Injects faults into calls of the current thread while this object exists. Only one such object may exist on
// a thread at a time.
class InjectedFaults {
 public:
  InjectedFaults();
  ~InjectedFaults();
  InjectedFaults(const InjectedFaults&) = delete;
  InjectedFaults& operator=(const InjectedFaults&) = delete;

  // Makes the calls number first, first + step, first + 2 step, ... fail with this errno. Calls are counted
  // from 1.
  void fail(Call call, int sys_errno, uint64_t first = 1, uint64_t step = 1);
  // Makes each read or write transfer at most `bytes` bytes.
  void shorten(Call call, size_t bytes) { at(call).max_bytes = bytes; }

  uint64_t calls(Call call) { return at(call).calls; }

  // Counts a call, and returns true if the call must fail; errno is then set. The functions that replace
  // those of the C library call must_fail().
  bool must_fail(Call call);
  size_t shortened(Call call, size_t bytes);

 private:
  struct Plan {
    uint64_t calls = 0;
    int sys_errno = 0;
    uint64_t first = 1;
    uint64_t step = 1;
    size_t max_bytes = SIZE_MAX;
  };
  Plan& at(Call call) { return plans_[size_t(call)]; }
  std::array<Plan, size_t(Call::count)> plans_{};
};

// Whether the folder's file system has files without a name (O_TMPFILE).
bool has_nameless_files(const std::filesystem::path& folder);

// The number of allocations by operator new on the current thread so far.
uint64_t allocations();

}  // namespace penstock
