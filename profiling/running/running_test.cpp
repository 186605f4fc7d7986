#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstring>
#include <fstream>
#include <optional>
#include <thread>

#include "io_backends/base/system/interrupt.hpp"
#include "io_backends/base/testing.hpp"
#include "profiling/running/recording_process.hpp"
#include "profiling/running/session_snapshot.hpp"
#include "profiling/running/trace_window.hpp"
#include "profiling/session/kernel_processes.hpp"
#include "profiling/session/session.hpp"
#include "profiling/session/session_folder.hpp"
#include "profiling/session/session_testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

// This process plays each of those that record.
SessionBytes of_this_process() {
  SessionBytes bytes(static_cast<std::uint32_t>(::getpid()));
  bytes.header().process_start = process_start(bytes.header().pid);
  bytes.header().state = PENSTOCK_RUNNING;
  bytes.header().end_monotonic_ns = 0;
  std::memset(bytes.header().host, 0, sizeof bytes.header().host);
  this_host().copy(bytes.header().host, sizeof bytes.header().host - 1);
  return bytes;
}

// Does nothing, until it is ended.
class IdleChild {
 public:
  IdleChild() : pid_(::fork()) {
    while (pid_ == 0) ::pause();
  }
  ~IdleChild() { end(); }
  IdleChild(const IdleChild&) = delete;
  IdleChild& operator=(const IdleChild&) = delete;
  SessionBytes session() const {
    SessionBytes bytes = of_this_process();
    bytes.header().pid = static_cast<std::uint32_t>(pid_);
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

class SessionControlTest : public testing::Test {
 protected:
  std::vector<RecordingProcess> running() const { return recording_processes(folder_.path()).value(); }
  bool is_on(const fs::path& file) const {
    return (SessionImage::open(file).value()->header().control & 1U) != 0;
  }
  ScratchFolder folder_;
};

TEST_F(SessionControlTest, KnowsWhatRuns) {
  SessionBytes mine = of_this_process();
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
    SessionBytes away(300 + rank);
    away.header().state = PENSTOCK_RUNNING;
    away.header().rank = rank;
    away.header().ranks = 2;
    away.header().control = rank;
    away.write(folder_.path());
  }
  std::ofstream(folder_.path() / "7-7.session") << "torn";
  ASSERT_EQ(::mkfifo((folder_.path() / "8-8.session").c_str(), 0600), 0);
  const auto processes = running();
  ASSERT_EQ(processes.size(), 3U);
  EXPECT_EQ(processes[0].rank, 0);
  EXPECT_EQ(processes[0].host, "testhost");
  EXPECT_EQ(processes[0].command, "program word");
  EXPECT_FALSE(processes[0].here);
  EXPECT_FALSE(processes[0].trace);
  EXPECT_EQ(processes[1].rank, 1);
  EXPECT_TRUE(processes[1].trace);
  EXPECT_EQ(processes[2].rank, -1);
  EXPECT_EQ(processes[2].pid, static_cast<std::uint32_t>(::getpid()));
  EXPECT_TRUE(processes[2].here);
  EXPECT_EQ(processes[2].trace_bytes, 4096U);
  EXPECT_ERRC(Errc::not_found, recording_processes(folder_.path() / "none"));
}

TEST_F(SessionControlTest, TheNewestFileOfAProcessIsItsOwn) {
  SessionBytes before = of_this_process();
  before.header().state = PENSTOCK_STOPPED;
  before.write(folder_.path());
  SessionBytes after = of_this_process();
  after.header().begin.monotonic_ns += 5;
  const fs::path newest = after.write(folder_.path());
  ASSERT_EQ(running().size(), 1U);
  EXPECT_EQ(running()[0].file, newest.string());
  after.header().state = PENSTOCK_STOPPED;
  after.write(folder_.path());
  EXPECT_TRUE(running().empty());
}

TEST_F(SessionControlTest, SwitchesOneWord) {
  SessionBytes bytes = of_this_process();
  bytes.header().control = 6;  // bits of a later time
  const fs::path file = bytes.write(folder_.path());
  ASSERT_TRUE(set_trace(running()[0], true).ok());
  EXPECT_EQ(SessionImage::open(file).value()->header().control, 7U);
  EXPECT_TRUE(running()[0].trace);
  ASSERT_TRUE(set_trace(running()[0], false).ok());
  bytes.header().control = 6;
  std::ifstream in(file, std::ios::binary);
  const std::string now{std::istreambuf_iterator<char>(in), {}};
  EXPECT_EQ(now, std::string(reinterpret_cast<const char*>(bytes.bytes().data()), bytes.bytes().size()));
}

TEST_F(SessionControlTest, WritesToNothingButASessionOfAProcessThatRuns) {
  SessionBytes bytes = of_this_process();
  const fs::path file = bytes.write(folder_.path());
  const RecordingProcess process = running()[0];
  RecordingProcess other = process;
  other.here = false;
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
  EXPECT_FALSE(is_on(file));
  bytes.header().state = PENSTOCK_ENDED;
  bytes.write(folder_.path());
  EXPECT_ERRC(Errc::not_found, set_trace(process, true));
  EXPECT_FALSE(is_on(file));
  bytes.header().control = 1;
  bytes.write(folder_.path());
  EXPECT_ERRC(Errc::not_found, set_trace(process, false));
  EXPECT_FALSE(is_on(file));  // for children that begin with it
  fs::remove(file);
  EXPECT_ERRC(Errc::not_found, set_trace(process, true));
}

TEST_F(SessionControlTest, AnotherUsersIsLeftAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be somebody else";
  const fs::path file = of_this_process().write(folder_.path());
  const RecordingProcess process = running()[0];
  fs::permissions(folder_.path(), fs::perms(0755));
  fs::permissions(file, fs::perms(0666));  // whatever its mode says
  ASSERT_EQ(::seteuid(65534), 0);
  const Result<void> open_to_all = set_trace(process, true);
  ASSERT_EQ(::seteuid(0), 0);
  fs::permissions(file, fs::perms(0600));
  ASSERT_EQ(::seteuid(65534), 0);
  const Result<void> closed = set_trace(process, true);
  ASSERT_EQ(::seteuid(0), 0);
  EXPECT_TRUE(fails_with(Errc::permission_denied, open_to_all, "another user's"));
  EXPECT_ERRC(Errc::permission_denied, closed);
  EXPECT_FALSE(is_on(file));
}

TEST_F(SessionControlTest, ASnapshotIsASession) {
  SessionBytes mine = of_this_process();
  mine.add_file("/data/a", 1, 3, 100);
  mine.write(folder_.path());
  SessionBytes ended(200);
  ended.add_file("/data/b", 1, 2, 10);
  ended.write(folder_.path());
  std::ofstream(folder_.path() / "7-7.session") << std::string(100, '\0');  // about to be begun
  SessionNote note;
  note.command = {"job"};
  note.started = "2026-01-01T00:00:00Z";
  ASSERT_TRUE(write_note(folder_.path(), note).ok());
  const ScratchFolder place;
  const fs::path to = place.path() / "copy";
  ASSERT_TRUE(snapshot_session(folder_.path(), to).ok());
  struct stat about {};
  ASSERT_EQ(::stat(to.c_str(), &about), 0);
  EXPECT_EQ(about.st_mode & 0777U, 0700U);
  const fs::path paths[] = {to};
  const Session session = open_session(paths).value();
  EXPECT_TRUE(session.problems.empty());
  ASSERT_EQ(session.processes.size(), 2U);
  EXPECT_EQ(read_note(to).command, std::vector<std::string>{"job"});
  for (const auto& image : session.images) {
    ASSERT_EQ(::stat(image->path().c_str(), &about), 0);
    EXPECT_EQ(about.st_mode & 0777U, 0600U);
    if (image->header().pid == 200) continue;
    EXPECT_EQ(image->header().kernel_end_known, 1U);  // of the moment of the copy
  }
  EXPECT_ERRC(Errc::already_exists, snapshot_session(folder_.path(), to));
  EXPECT_ERRC(Errc::not_found, snapshot_session(place.path(), place.path() / "never"));
  EXPECT_FALSE(fs::exists(place.path() / "never"));
}

TEST_F(SessionControlTest, AWindowDisarmsWhatItArmed) {
  const fs::path file = of_this_process().write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  {
    TraceWindow window(targets);
    ASSERT_TRUE(window.look().ok());
    EXPECT_TRUE(is_on(file));
    ASSERT_TRUE(window.look().ok());
    ASSERT_EQ(window.processes().size(), 1U);
    EXPECT_FALSE(window.over());
  }
  EXPECT_FALSE(is_on(file));
  ASSERT_TRUE(set_trace(running()[0], true).ok());
  {
    TraceWindow window(targets);
    ASSERT_TRUE(window.look().ok());
    EXPECT_TRUE(window.processes()[0].was_on);
  }
  EXPECT_TRUE(is_on(file));  // as it was
  targets.ranks = {3};
  EXPECT_ERRC(Errc::not_found, TraceWindow(targets).look());
}

TEST_F(SessionControlTest, AWindowFollowsAProcessToItsNextFile) {
  SessionBytes bytes = of_this_process();
  const fs::path before = bytes.write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  TraceWindow window(targets);
  ASSERT_TRUE(window.look().ok());
  bytes.header().control = 1;
  bytes.header().state = PENSTOCK_EXECUTED;
  bytes.write(folder_.path());
  bytes.header().control = 0;
  bytes.header().state = PENSTOCK_RUNNING;
  bytes.header().begin.monotonic_ns += 7;
  const fs::path after = bytes.write(folder_.path());
  ASSERT_TRUE(window.look().ok());
  EXPECT_TRUE(is_on(after));
  window.end();
  EXPECT_FALSE(is_on(after));
  ASSERT_EQ(window.processes().size(), 1U);
  EXPECT_FALSE(window.processes()[0].ended);
  EXPECT_GE(window.processes()[0].to_ns, window.processes()[0].from_ns);
}

TEST_F(SessionControlTest, AWindowGoesOnWhileAProcessIsBetweenTwoFiles) {
  SessionBytes mine = of_this_process();
  mine.write(folder_.path());
  IdleChild child;
  child.session().write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  TraceWindow window(targets);
  ASSERT_TRUE(window.look().ok());
  EXPECT_EQ(window.running(), 2U);
  child.end();
  mine.header().state = PENSTOCK_EXECUTED;
  mine.write(folder_.path());
  ASSERT_TRUE(window.look().ok());
  EXPECT_EQ(window.running(), 1U);
  EXPECT_FALSE(window.over());
  mine.header().state = PENSTOCK_RUNNING;
  mine.header().begin.monotonic_ns += 7;
  const fs::path next = mine.write(folder_.path());
  ASSERT_TRUE(window.look().ok());
  EXPECT_TRUE(is_on(next));
}

TEST_F(SessionControlTest, AWindowDisarmsGrandchildrenWhoseParentsAreGone) {
  SessionBytes mine = of_this_process();
  mine.write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  TraceWindow window(targets);
  ASSERT_TRUE(window.look().ok());
  SessionBytes gone = of_this_process();  // forked and ended between two looks
  gone.header().pid = 999'999'999;
  gone.header().state = PENSTOCK_ENDED;
  gone.header().inherited_from = mine.header().pid;
  gone.write(folder_.path());
  const IdleChild child;
  const auto begin_with_word_of = [&](std::uint32_t pid, std::int64_t begin) {
    SessionBytes bytes = child.session();
    bytes.header().parent_pid = 1;
    bytes.header().inherited_from = pid;
    bytes.header().control = 1;
    bytes.header().begin.monotonic_ns += begin;
    return bytes.write(folder_.path());
  };
  const fs::path file = begin_with_word_of(gone.header().pid, 0);
  ASSERT_TRUE(window.look().ok());
  ASSERT_EQ(window.processes().size(), 2U);
  EXPECT_FALSE(window.processes()[1].was_on);
  window.end();
  EXPECT_FALSE(is_on(file));
  // What was on by somebody else's word stays so.
  const fs::path others = begin_with_word_of(1, 1);
  {
    TraceWindow another(targets);
    ASSERT_TRUE(another.look().ok());
  }
  EXPECT_TRUE(is_on(others));
}

TEST_F(SessionControlTest, AWordIsNotLostBetweenTwoFiles) {
  SessionBytes mine = of_this_process();
  mine.header().control = 1;
  mine.header().state = PENSTOCK_STOPPED;
  mine.write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  mine.header().state = PENSTOCK_RUNNING;
  mine.header().begin.monotonic_ns += 7;
  const ScratchFolder aside;
  const fs::path next = folder_.path() / "next.session";
  std::thread goes_on([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    fs::rename(mine.write(aside.path()), next);  // it is there at once
  });
  const auto switched = switch_trace(targets, false);
  goes_on.join();
  ASSERT_OK(switched);
  ASSERT_EQ(switched->size(), 1U);
  EXPECT_TRUE((*switched)[0].changed);
  EXPECT_FALSE((*switched)[0].ended);
  EXPECT_FALSE(is_on(next));
}

TEST_F(SessionControlTest, ASnapshotTellsHostsApart) {
  SessionBytes mine = of_this_process();
  mine.write(folder_.path());
  SessionBytes away(mine.header().pid);
  away.header().state = PENSTOCK_RUNNING;
  away.header().begin.monotonic_ns += 7;
  away.write(folder_.path());
  const fs::path to = folder_.path() / "copy";
  ASSERT_TRUE(snapshot_session(folder_.path(), to).ok());
  const fs::path paths[] = {to};
  const Session session = open_session(paths).value();
  for (const auto& image : session.images)
    EXPECT_EQ(image->header().kernel_end_known, image->host() == "testhost" ? 0U : 1U);
}

TEST_F(SessionControlTest, ASnapshotThatIsInterruptedLeavesNothing) {
  of_this_process().write(folder_.path());
  const fs::path to = folder_.path() / "copy";
  simulate_interrupt(SIGINT);
  EXPECT_ERRC(Errc::interrupted, snapshot_session(folder_.path(), to));
  simulate_interrupt(0);
  EXPECT_FALSE(fs::exists(to));
}

// A process that needs the room of its oldest calls all the time; each block has the number of its filling in
// all of its calls.
class Renewing {
 public:
  static constexpr std::uint64_t kBlocks = 16;
  static constexpr std::uint64_t kCalls =
      (PENSTOCK_BLOCK_GRANULE - sizeof(penstock_block)) / sizeof(penstock_segment);

  explicit Renewing(const fs::path& folder) {
    SessionBytes bytes = of_this_process();
    for (std::uint64_t i = 0; i < kBlocks * kCalls; ++i) bytes.add(penstock_segment{});
    const fs::path file = bytes.write(folder);
    bytes_ = bytes.bytes().size();
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    base_ = static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
    thread_ = std::thread([this] { run(); });
  }
  ~Renewing() {
    stop_ = true;
    thread_.join();
    ::munmap(base_, bytes_);
  }
  Renewing(const Renewing&) = delete;
  Renewing& operator=(const Renewing&) = delete;
  std::uint64_t made() const { return made_; }

 private:
  void run() {
    auto& header = *reinterpret_cast<penstock_session_header*>(base_);
    for (std::uint64_t number = 1; !stop_; ++number) {
      char* const at = base_ + PENSTOCK_HEADER_BYTES + number % kBlocks * PENSTOCK_BLOCK_GRANULE;
      auto& block = *reinterpret_cast<penstock_block*>(at);
      __atomic_fetch_add(&header.dropped_segments, kCalls, __ATOMIC_SEQ_CST);
      __atomic_store_n(&block.used, std::uint64_t{0}, __ATOMIC_SEQ_CST);
      __atomic_store_n(&block.renewed, block.renewed + 1, __ATOMIC_SEQ_CST);
      auto* const calls = reinterpret_cast<penstock_segment*>(at + sizeof(penstock_block));
      for (std::uint64_t i = 0; i < kCalls; ++i) calls[i].offset = number;
      __atomic_store_n(&block.used, kCalls * sizeof(penstock_segment), __ATOMIC_SEQ_CST);
      made_ += kCalls;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  char* base_ = nullptr;
  std::size_t bytes_ = 0;
  std::atomic<std::uint64_t> made_{kBlocks * kCalls};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST_F(SessionControlTest, ASnapshotCountsWhatGaveWayWhileItWasMade) {
  const Renewing process(folder_.path());
  for (int i = 0; i < 30; ++i) {
    const std::uint64_t before = process.made();
    const fs::path to = folder_.path() / std::to_string(i);
    ASSERT_TRUE(snapshot_session(folder_.path(), to).ok());
    const std::uint64_t after = process.made();
    const fs::path paths[] = {to};
    const Session session = open_session(paths).value();
    const SessionView& view = session.images.at(0)->view();
    std::uint64_t all = view.header().dropped_segments;
    for (const SessionBlock& block : view.blocks()) {
      std::optional<std::uint64_t> number;
      SessionView::each_in<penstock_segment>(block, [&](const penstock_segment& segment, std::uint64_t) {
        EXPECT_EQ(number.value_or(segment.offset), segment.offset) << "half one and half another";
        number = segment.offset;
        ++all;
      });
    }
    EXPECT_GE(all, before);
    EXPECT_LE(all, after + 2 * Renewing::kCalls);  // one that is being emptied is seen in both
  }
}

}  // namespace
}  // namespace penstock
