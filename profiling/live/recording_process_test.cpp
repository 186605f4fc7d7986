#include "profiling/live/recording_process.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <fstream>

#include "profiling/live/running_testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using RecordingProcessTest = RunningTest;

TEST_F(RecordingProcessTest, ListsRunningProcesses) {
  SessionBytes mine = session_of_this_process();
  mine.header().trace_limit = 4096;
  mine.write(folder_.path());
  SessionBytes ended(200);
  ended.write(folder_.path());
  SessionBytes killed(1);
  killed.header().state = PENSTOCK_RUNNING;
  killed.header().process_start = 1'000'000'000'000;
  std::memcpy(killed.header().host, mine.header().host, sizeof killed.header().host);
  killed.write(folder_.path());
  for (const unsigned rank : {1U, 0U}) {
    SessionBytes remote(300 + rank);
    remote.header().state = PENSTOCK_RUNNING;
    remote.header().rank = rank;
    remote.header().ranks = 2;
    remote.header().control = rank;
    remote.write(folder_.path());
  }
  std::ofstream(folder_.path() / "7-7.session") << "torn";
  ASSERT_EQ(::mkfifo((folder_.path() / "8-8.session").c_str(), 0600), 0);
  const auto processes = running();
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_EQ(processes[0].rank, 0);
  EXPECT_EQ(processes[0].host, "testhost");
  EXPECT_EQ(processes[0].command, "program word");
  EXPECT_FALSE(processes[0].on_this_machine);
  EXPECT_FALSE(processes[0].trace);
  EXPECT_EQ(processes[1].rank, 1);
  EXPECT_TRUE(processes[1].trace);
  EXPECT_EQ(processes[2].rank, -1);
  EXPECT_EQ(processes[2].pid, uint32_t(::getpid()));
  EXPECT_TRUE(processes[2].on_this_machine);
  EXPECT_EQ(processes[2].trace_limit_bytes, 4096U);
  EXPECT_ERRC(Errc::not_found, recording_processes(folder_.path() / "none"));
}

TEST_F(RecordingProcessTest, AProcessIsDescribedByItsNewestFile) {
  SessionBytes before = session_of_this_process();
  before.header().state = PENSTOCK_STOPPED;
  before.write(folder_.path());
  SessionBytes after = session_of_this_process();
  after.header().begin.monotonic_ns += 5;
  const fs::path newest = after.write(folder_.path());
  ASSERT_EQ(running().size(), 1U);
  EXPECT_EQ(running()[0].file, newest.string());
  after.header().state = PENSTOCK_STOPPED;
  after.write(folder_.path());
  EXPECT_TRUE(running().empty());
}

TEST_F(RecordingProcessTest, ChangesOnlyTheTraceBit) {
  SessionBytes bytes = session_of_this_process();
  bytes.header().control = 6;  // bits that a later version may use
  const fs::path file = bytes.write(folder_.path());
  ASSERT_TRUE(set_trace(running()[0], true).ok());
  EXPECT_EQ(ProcessFile::open(file).value()->header().control, 7U);
  EXPECT_TRUE(running()[0].trace);
  ASSERT_TRUE(set_trace(running()[0], false).ok());
  bytes.header().control = 6;
  std::ifstream in(file, std::ios::binary);
  const std::string content{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(content, std::string(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size()));
}

TEST_F(RecordingProcessTest, WritesOnlyToSessionFilesOfRunningProcesses) {
  SessionBytes bytes = session_of_this_process();
  const fs::path file = bytes.write(folder_.path());
  const RecordingProcess process = running()[0];
  RecordingProcess other = process;
  other.on_this_machine = false;
  EXPECT_TRUE(fails_with(Errc::unsupported, set_trace(other, true), "srun --overlap"));
  other = process;
  other.pid += 1;
  EXPECT_ERRC(Errc::corrupt, set_trace(other, true));
  other = process;
  other.file = folder_.path() / "link.session";
  fs::create_symlink(file, other.file);
  EXPECT_TRUE(fails_with(Errc::corrupt, set_trace(other, true), "symbolic link"));
  other.file = folder_.path() / "text.session";
  std::ofstream(other.file) << std::string(20'000, 'x');
  EXPECT_ERRC(Errc::corrupt, set_trace(other, true));
  other.file = folder_.path() / "pipe.session";
  ASSERT_EQ(::mkfifo(other.file.c_str(), 0600), 0);
  EXPECT_ERRC(Errc::corrupt, set_trace(other, true));
  EXPECT_FALSE(is_trace_on(file));
  bytes.header().state = PENSTOCK_ENDED;
  bytes.write(folder_.path());
  EXPECT_ERRC(Errc::not_found, set_trace(process, true));
  EXPECT_FALSE(is_trace_on(file));
  bytes.header().control = 1;
  bytes.write(folder_.path());
  EXPECT_ERRC(Errc::not_found, set_trace(process, false));
  EXPECT_FALSE(is_trace_on(file));  // switched off for children that inherit the switch
  fs::remove(file);
  EXPECT_ERRC(Errc::not_found, set_trace(process, true));
}

TEST_F(RecordingProcessTest, DoesNotWriteToFilesOfAnotherUser) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  const fs::path file = session_of_this_process().write(folder_.path());
  const RecordingProcess process = running()[0];
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(file, fs::perms(0666));  // the mode lets everyone write
  ASSERT_EQ(::seteuid(65534), 0);
  const Result<void> open_to_all = set_trace(process, true);
  ASSERT_EQ(::seteuid(0), 0);
  fs::permissions(file, fs::perms(0600));
  ASSERT_EQ(::seteuid(65534), 0);
  const Result<void> closed = set_trace(process, true);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(fails_with(Errc::permission_denied, open_to_all, "another user"));
  EXPECT_ERRC(Errc::permission_denied, closed);
  EXPECT_FALSE(is_trace_on(file));
}

}  // namespace
}  // namespace penstock
