// Tests operations of a signal handler that interrupts an update of its own thread. There is one thread and
// no real signal: the tests set the mark of an update themselves.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdint>
#include <limits>
#include <string>

#include "profiling/interpose/counting/counting.hpp"
#include "profiling/interpose/counting/descriptors.hpp"
#include "profiling/interpose/counting/interpose_testing.hpp"

namespace penstock::interpose {
namespace {

using Deferred = InSession;

TEST_F(Deferred, AnOperationWithinAnUpdateIsCountedAfterTheUpdate) {
  ThreadLog* log = thread_log();
  ASSERT_NE(log, nullptr);
  const char text[] = "/nested";
  penstock_counters* c = counters_of(*log, {.file = 99, .text = text, .length = sizeof(text) - 1},
                                     PENSTOCK_POSIX, PENSTOCK_CALL_READ, 1);
  ASSERT_NE(c, nullptr);
  const Operation read{.call = PENSTOCK_CALL_READ, .offset = 0, .length = 5, .begin = 1, .end = 2};
  {
    // Sets a mark with a higher address than every stack frame, so that an update seems to run in a caller.
    log->update_mark = reinterpret_cast<const char*>(std::numeric_limits<uintptr_t>::max());
    count_in_counters(*log, *c, read);
    EXPECT_EQ(as_brief(*c).reads, 0U);
    EXPECT_EQ(log->deferred_count, 1U);
    log->update_mark = nullptr;
  }
  count_in_counters(*log, *c, read);
  EXPECT_EQ(as_brief(*c).reads, 2U);
  EXPECT_EQ(c->bytes_read, 10U);
  EXPECT_EQ(log->deferred_count, 0U);
  // After a longjmp() out of an update, its mark may still be set. Its address is lower than this stack
  // frame's, so the mark is ignored.
  log->update_mark = reinterpret_cast<const char*>(1);
  count_in_counters(*log, *c, read);
  EXPECT_EQ(as_brief(*c).reads, 3U);
  EXPECT_EQ(log->update_mark, nullptr);
}

// Tests operations of a signal handler on a descriptor that was opened before recording began.
class HandlersDescriptor : public InSession {
 protected:
  void SetUp() override {
    InSession::SetUp();
    log_ = thread_log();
    ASSERT_NE(log_, nullptr);
    fd_ = open(name_.c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
    ASSERT_GE(fd_, 0);
    ASSERT_EQ(description_of(fd_), nullptr);
    dropped_before_ = dropped();
  }
  void TearDown() override {
    forget(fd_);
    close(fd_);
    unlink(name_.c_str());
    InSession::TearDown();
  }
  void read_in_handler(int64_t offset, int64_t bytes = 5) {
    log_->update_mark = reinterpret_cast<const char*>(std::numeric_limits<uintptr_t>::max());
    const Operation read{.call = PENSTOCK_CALL_READ, .offset = offset, .length = bytes, .begin = 1, .end = 2};
    EXPECT_EQ(count(*log_, fd_, read), nullptr);
    EXPECT_EQ(log_->deferred_count, 1U);
    log_->update_mark = nullptr;
  }
  void end_update() {
    { const Update ends(*log_); }
    EXPECT_EQ(log_->deferred_count, 0U);
  }
  const penstock_counters* counters() {
    const Description* description = description_of(fd_);
    return description == nullptr ? nullptr : log_->files.find(description->file, PENSTOCK_POSIX);
  }
  static uint64_t dropped() { return session.header->dropped_operations; }

  ThreadLog* log_ = nullptr;
  int fd_ = -1;
  uint64_t dropped_before_ = 0;
  const std::string name_ = testing::TempDir() + "penstock-unseen-" + std::to_string(getpid()) +
                            testing::UnitTest::GetInstance()->current_test_info()->name();
};

TEST_F(HandlersDescriptor, IsLookedUpAfterTheUpdate) {
  read_in_handler(0);
  end_update();
  const penstock_counters* c = counters();
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(as_brief(*c).reads, 1U);
  EXPECT_EQ(c->bytes_read, 5U);
  EXPECT_EQ(dropped(), dropped_before_);
}

TEST_F(HandlersDescriptor, IsLookedUpAfterAnUpdateWithCachedCounters) {
  constexpr int kKnownDescriptor = 701;
  count_open(*log_, AT_FDCWD, "/known", O_RDONLY, kKnownDescriptor,
             {.call = PENSTOCK_CALL_OPEN, .begin = 1, .end = 2});
  read_in_handler(0);
  ASSERT_NE(count(*log_, kKnownDescriptor, {.call = PENSTOCK_CALL_STAT, .begin = 2, .end = 3}), nullptr);
  EXPECT_EQ(log_->deferred_count, 0U);
  const penstock_counters* c = counters();
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(as_brief(*c).reads, 1U);
  EXPECT_NE(forget_before_close(*log_, kKnownDescriptor), nullptr);
}

TEST_F(HandlersDescriptor, IsReadAtItsPosition) {
  ASSERT_EQ(lseek(fd_, 105, SEEK_SET), 105);  // the file position after the read
  read_in_handler(-1);
  end_update();
  const penstock_counters* c = counters();
  ASSERT_NE(c, nullptr);
  EXPECT_EQ(as_brief(*c).last_read, 104U);
  EXPECT_EQ(description_of(fd_)->position.load(), 105);
  // A read of 0 bytes at the end changes nothing.
  forget(fd_);
  read_in_handler(-1, 0);
  end_update();
  EXPECT_EQ(as_brief(*c).last_read, 104U);
}

TEST_F(HandlersDescriptor, CountsAsDroppedIfItRefersToAnotherFileByThen) {
  read_in_handler(0);
  const int other_fd = open("/", O_RDONLY | O_CLOEXEC);
  ASSERT_GE(other_fd, 0);
  ASSERT_EQ(dup2(other_fd, fd_), fd_);
  close(other_fd);
  end_update();
  EXPECT_EQ(description_of(fd_), nullptr);
  EXPECT_EQ(dropped(), dropped_before_ + 1);
}

TEST_F(HandlersDescriptor, CountsAsDroppedIfItIsClosedByThen) {
  read_in_handler(0);
  close(fd_);
  end_update();
  EXPECT_EQ(dropped(), dropped_before_ + 1);
}

TEST_F(HandlersDescriptor, IsNotCountedIfItIsAPipe) {
  int ends[2] = {-1, -1};
  ASSERT_EQ(pipe(ends), 0);
  ASSERT_EQ(dup2(ends[0], fd_), fd_);
  read_in_handler(-1);
  end_update();
  EXPECT_EQ(dropped(), dropped_before_);
  close(ends[0]);
  close(ends[1]);
}

// The session of the log has ended and no new session runs. So there is no file to which a name could be
// written.
TEST_F(HandlersDescriptor, CountsAsDroppedIfTheSessionEndsMeanwhile) {
  read_in_handler(0);
  log_->is_retired = true;
  session.state.store(SessionState::off);
  end_update();
  session.state.store(SessionState::running);
  log_->is_retired = false;
  EXPECT_EQ(description_of(fd_), nullptr);
  EXPECT_EQ(dropped(), dropped_before_ + 1);
}

TEST_F(HandlersDescriptor, DefersUpToTheMaximumNumberOfCalls) {
  log_->update_mark = reinterpret_cast<const char*>(std::numeric_limits<uintptr_t>::max());
  for (size_t i = 0; i < ThreadLog::kMaxDeferred + 3; ++i)
    count(*log_, fd_, {.call = PENSTOCK_CALL_READ, .offset = 0, .length = 5, .begin = 1, .end = 2});
  EXPECT_EQ(log_->deferred_count, ThreadLog::kMaxDeferred);
  EXPECT_EQ(dropped(), dropped_before_ + 3);
  log_->update_mark = nullptr;
  end_update();
  ASSERT_NE(counters(), nullptr);
  EXPECT_EQ(as_brief(*counters()).reads, ThreadLog::kMaxDeferred);
}

}  // namespace
}  // namespace penstock::interpose
