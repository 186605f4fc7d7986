// For tests only: system calls that fail, come short or are interrupted. The test program defines the calls
// itself (system_faults_test.cpp), which makes the linker prefer them to the C library's; outside the life of
// an InjectedFaults, and on other threads, they pass through.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <filesystem>

namespace penstock {

enum class Call : std::uint8_t {
  open,           // openat of something with a name
  open_nameless,  // openat with O_TMPFILE
  read,           // read, pread, preadv
  write,          // pwrite, pwritev
  linkat,
  renameat,
  renameat2,
  fdatasync,
  fsync,
  fallocate,
  fadvise,  // counted only
  close,
  ring_submit,  // io_uring_submit, of liburing
  count,
};

// Faults of the calling thread while this lives. One at a time.
class InjectedFaults {
 public:
  InjectedFaults();
  ~InjectedFaults();
  InjectedFaults(const InjectedFaults&) = delete;
  InjectedFaults& operator=(const InjectedFaults&) = delete;

  // The calls number first, first + step, first + 2 step ... (from 1) fail with this errno.
  void fail(Call call, int sys_errno, std::uint64_t first = 1, std::uint64_t step = 1);
  // Each read or write moves at most that many bytes.
  void shorten(Call call, std::size_t bytes) { at(call).at_most = bytes; }

  std::uint64_t calls(Call call) { return at(call).calls; }

  // For the calls: counts one, and says whether it fails (errno is set then).
  bool strikes(Call call);
  std::size_t shortened(Call call, std::size_t bytes);

 private:
  struct Plan {
    std::uint64_t calls = 0;
    int sys_errno = 0;
    std::uint64_t first = 1;
    std::uint64_t step = 1;
    std::size_t at_most = SIZE_MAX;
  };
  Plan& at(Call call) { return plans_[static_cast<std::size_t>(call)]; }
  std::array<Plan, static_cast<std::size_t>(Call::count)> plans_{};
};

// Whether the folder's file system has files without a name (O_TMPFILE).
bool has_nameless_files(const std::filesystem::path& folder);

// Allocations by operator new on the calling thread so far.
std::uint64_t allocations();

}  // namespace penstock
