// For tests of recording processes: builds sessions of a process that really runs. It is this process, or an
// idle child.
#pragma once

#include <gtest/gtest.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <vector>

#include "io_backends/testing/testing.hpp"
#include "profiling/live/recording_process.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session.hpp"
#include "profiling/session/session_testing.hpp"

namespace penstock {

inline SessionBytes session_of_this_process() {
  SessionBytes bytes(static_cast<uint32_t>(::getpid()));
  bytes.header().process_start = process_start(bytes.header().pid);
  bytes.header().state = PENSTOCK_RUNNING;
  bytes.header().end_monotonic_ns = 0;
  std::memset(bytes.header().host, 0, sizeof bytes.header().host);
  this_host().copy(bytes.header().host, sizeof bytes.header().host - 1);
  return bytes;
}

// A child that does nothing until it is ended. It only calls pause(), so it needs no lock that another thread
// may have held at the fork.
class IdleChild {
 public:
  IdleChild() : pid_(::fork()) {
    while (pid_ == 0) ::pause();
  }
  ~IdleChild() { end(); }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;
  SessionBytes session() const {
    SessionBytes bytes = session_of_this_process();
    bytes.header().pid = uint32_t(pid_);
    bytes.header().process_start = process_start(bytes.header().pid);
    return bytes;
  }
  void end() {
    if (pid_ <= 0) return;
    ::kill(pid_, SIGKILL);
    ::waitpid(pid_, nullptr, 0);
    pid_ = 0;
  }

 private:
  pid_t pid_;
};

class RunningTest : public testing::Test {
 protected:
  std::vector<RecordingProcess> running() const { return recording_processes(folder_.path()).value(); }
  bool is_trace_on(const std::filesystem::path& file) const {
    return (ProcessFile::open(file).value()->header().control & 1U) != 0;
  }
  ScratchFolder folder_;
};

}  // namespace penstock
