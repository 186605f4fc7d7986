// Tests snapshots of sessions. BlockRenewer has a thread that writes to a session's file while the test
// copies it. The thread and the test share the mapped file, to which the thread makes atomic stores, and
// atomic members. No lock is used.
#include "profiling/live/session_snapshot.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <fstream>
#include <optional>
#include <thread>

#include "io_backends/core/system/interrupt.hpp"
#include "profiling/live/running_testing.hpp"
#include "profiling/session/session_folder.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using SnapshotTest = RunningTest;

TEST_F(SnapshotTest, ASnapshotIsASession) {
  SessionBytes mine = session_of_this_process();
  mine.add_file("/data/a", 1, 3, 100);
  mine.write(folder_.path());
  SessionBytes ended(200);
  ended.add_file("/data/b", 1, 2, 10);
  ended.write(folder_.path());
  // A file of a process that is just starting.
  std::ofstream(folder_.path() / "7-7.session") << std::string(100, '\0');
  SessionNote note;
  note.command = {"job"};
  note.started = "2026-01-01T00:00:00Z";
  ASSERT_TRUE(write_note(folder_.path(), note).ok());
  const ScratchFolder parent_folder;
  const fs::path to = parent_folder.path() / "copy";
  ASSERT_TRUE(snapshot_session(folder_.path(), to).ok());
  struct stat status {};
  ASSERT_EQ(::stat(to.c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0700U);
  const fs::path paths[] = {to};
  const Session session = open_session(paths).value();
  EXPECT_TRUE(session.problems.empty());
  ASSERT_EQ(session.processes.size(), 2U);
  EXPECT_EQ(read_note(to).command, std::vector<std::string>{"job"});
  for (const auto& process_file : session.process_files) {
    ASSERT_EQ(::stat(process_file->path().c_str(), &status), 0);
    EXPECT_EQ(status.st_mode & 0777U, 0600U);
    if (process_file->header().pid == 200) continue;
    EXPECT_EQ(process_file->header().kernel_end_known, 1U);  // known at the time of the copy
  }
  EXPECT_ERRC(Errc::already_exists, snapshot_session(folder_.path(), to));
  EXPECT_ERRC(Errc::not_found, snapshot_session(parent_folder.path(), parent_folder.path() / "never"));
  EXPECT_FALSE(fs::exists(parent_folder.path() / "never"));
}

TEST_F(SnapshotTest, ASnapshotDistinguishesHosts) {
  SessionBytes mine = session_of_this_process();
  mine.write(folder_.path());
  SessionBytes remote(mine.header().pid);
  remote.header().state = PENSTOCK_RUNNING;
  remote.header().begin.monotonic_ns += 7;
  remote.write(folder_.path());
  const fs::path to = folder_.path() / "copy";
  ASSERT_TRUE(snapshot_session(folder_.path(), to).ok());
  const fs::path paths[] = {to};
  const Session session = open_session(paths).value();
  for (const auto& process_file : session.process_files)
    EXPECT_EQ(process_file->header().kernel_end_known, process_file->host() == "testhost" ? 0U : 1U);
}

TEST_F(SnapshotTest, ASnapshotThatIsInterruptedLeavesNothing) {
  session_of_this_process().write(folder_.path());
  const fs::path to = folder_.path() / "copy";
  simulate_interrupt(SIGINT);
  EXPECT_ERRC(Errc::interrupted, snapshot_session(folder_.path(), to));
  simulate_interrupt(0);
  EXPECT_FALSE(fs::exists(to));
}

// Imitates a process that empties the block of its oldest calls and fills it again, all the time. All calls
// in a block have the same offset: the number of this filling. So a test can detect a block that is half old
// and half new.
class BlockRenewer {
 public:
  static constexpr uint64_t kBlocks = 16;
  static constexpr uint64_t kCalls =
      (PENSTOCK_BLOCK_GRANULE - sizeof(penstock_block)) / sizeof(penstock_segment);

  explicit BlockRenewer(const fs::path& folder) {
    SessionBytes bytes = session_of_this_process();
    for (uint64_t i = 0; i < kBlocks * kCalls; ++i) bytes.add(penstock_segment{});
    const fs::path file = bytes.write(folder);
    bytes_ = bytes.bytes().size();
    const int fd = ::open(file.c_str(), O_RDWR | O_CLOEXEC);
    base_ = static_cast<char*>(::mmap(nullptr, bytes_, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0));
    ::close(fd);
    thread_ = std::thread([this] { run(); });
  }
  ~BlockRenewer() {
    stop_ = true;
    thread_.join();
    ::munmap(base_, bytes_);
  }
  BlockRenewer(const BlockRenewer&) = delete;
  BlockRenewer& operator=(const BlockRenewer&) = delete;
  uint64_t segment_count() const { return segment_count_; }

 private:
  void run() {
    auto& header = *reinterpret_cast<penstock_session_header*>(base_);
    for (uint64_t number = 1; !stop_; ++number) {
      char* const at = base_ + PENSTOCK_HEADER_BYTES + number % kBlocks * PENSTOCK_BLOCK_GRANULE;
      auto& block = *reinterpret_cast<penstock_block*>(at);
      __atomic_fetch_add(&header.dropped_segments, kCalls, __ATOMIC_SEQ_CST);
      __atomic_store_n(&block.used, uint64_t{0}, __ATOMIC_SEQ_CST);
      __atomic_store_n(&block.renewed, block.renewed + 1, __ATOMIC_SEQ_CST);
      auto* const calls = reinterpret_cast<penstock_segment*>(at + sizeof(penstock_block));
      for (uint64_t i = 0; i < kCalls; ++i) calls[i].offset = number;
      __atomic_store_n(&block.used, kCalls * sizeof(penstock_segment), __ATOMIC_SEQ_CST);
      segment_count_ += kCalls;
      std::this_thread::sleep_for(std::chrono::microseconds(50));
    }
  }

  char* base_ = nullptr;
  size_t bytes_ = 0;
  std::atomic<uint64_t> segment_count_{kBlocks * kCalls};
  std::atomic<bool> stop_{false};
  std::thread thread_;
};

TEST_F(SnapshotTest, ASnapshotCountsSegmentsDroppedDuringTheCopy) {
  const BlockRenewer process(folder_.path());
  for (int i = 0; i < 30; ++i) {
    const uint64_t before = process.segment_count();
    const fs::path to = folder_.path() / std::to_string(i);
    ASSERT_TRUE(snapshot_session(folder_.path(), to).ok());
    const uint64_t after = process.segment_count();
    const fs::path paths[] = {to};
    const Session session = open_session(paths).value();
    const SessionView& view = session.process_files.at(0)->view();
    uint64_t all = view.header().dropped_segments;
    for (const SessionBlock& block : view.blocks()) {
      std::optional<uint64_t> number;
      SessionView::each_in<penstock_segment>(block, [&](const penstock_segment& segment, uint64_t) {
        EXPECT_EQ(number.value_or(segment.offset), segment.offset) << "half one and half another";
        number = segment.offset;
        ++all;
      });
    }
    EXPECT_GE(all, before);
    EXPECT_LE(all, after + 2 * BlockRenewer::kCalls);  // a block that is being emptied is counted twice
  }
}

}  // namespace
}  // namespace penstock
