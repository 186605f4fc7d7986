#include "profiling/live/trace_window.hpp"

#include <chrono>
#include <thread>

#include "profiling/live/running_testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;
using TraceWindowTest = RunningTest;

TEST_F(TraceWindowTest, AWindowSwitchesOffWhatItSwitchedOn) {
  const fs::path file = session_of_this_process().write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  {
    TraceWindow window(targets);
    ASSERT_TRUE(window.update().ok());
    EXPECT_TRUE(is_trace_on(file));
    ASSERT_TRUE(window.update().ok());
    ASSERT_EQ(window.processes().size(), 1U);
    EXPECT_FALSE(window.finished());
  }
  EXPECT_FALSE(is_trace_on(file));
  ASSERT_TRUE(set_trace(running()[0], true).ok());
  {
    TraceWindow window(targets);
    ASSERT_TRUE(window.update().ok());
    EXPECT_TRUE(window.processes()[0].was_on);
  }
  EXPECT_TRUE(is_trace_on(file));  // tracing was on before the window
  targets.ranks = {3};
  EXPECT_ERRC(Errc::not_found, TraceWindow(targets).update());
}

TEST_F(TraceWindowTest, AWindowFollowsAProcessToItsNextFile) {
  SessionBytes bytes = session_of_this_process();
  const fs::path before = bytes.write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  TraceWindow window(targets);
  ASSERT_TRUE(window.update().ok());
  bytes.header().control = 1;
  bytes.header().state = PENSTOCK_EXECUTED;
  bytes.write(folder_.path());
  bytes.header().control = 0;
  bytes.header().state = PENSTOCK_RUNNING;
  bytes.header().begin.monotonic_ns += 7;
  const fs::path after = bytes.write(folder_.path());
  ASSERT_TRUE(window.update().ok());
  EXPECT_TRUE(is_trace_on(after));
  window.end();
  EXPECT_FALSE(is_trace_on(after));
  ASSERT_EQ(window.processes().size(), 1U);
  EXPECT_FALSE(window.processes()[0].ended);
  EXPECT_GE(window.processes()[0].to_ns, window.processes()[0].from_ns);
}

TEST_F(TraceWindowTest, AWindowContinuesWhileAProcessIsBetweenTwoFiles) {
  SessionBytes mine = session_of_this_process();
  mine.write(folder_.path());
  IdleChild child;
  child.session().write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  TraceWindow window(targets);
  ASSERT_TRUE(window.update().ok());
  EXPECT_EQ(window.running_count(), 2U);
  child.end();
  mine.header().state = PENSTOCK_EXECUTED;
  mine.write(folder_.path());
  ASSERT_TRUE(window.update().ok());
  EXPECT_EQ(window.running_count(), 1U);
  EXPECT_FALSE(window.finished());
  mine.header().state = PENSTOCK_RUNNING;
  mine.header().begin.monotonic_ns += 7;
  const fs::path next = mine.write(folder_.path());
  ASSERT_TRUE(window.update().ok());
  EXPECT_TRUE(is_trace_on(next));
}

TEST_F(TraceWindowTest, AWindowSwitchesOffGrandchildrenWhoseParentsHaveEnded) {
  SessionBytes mine = session_of_this_process();
  mine.write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  TraceWindow window(targets);
  ASSERT_TRUE(window.update().ok());
  SessionBytes gone = session_of_this_process();  // forked and ended between two calls of update()
  gone.header().pid = 999'999'999;
  gone.header().state = PENSTOCK_ENDED;
  gone.header().inherited_from = mine.header().pid;
  gone.write(folder_.path());
  const IdleChild child;
  const auto write_session_inherited_from = [&](uint32_t pid, int64_t begin) {
    SessionBytes bytes = child.session();
    bytes.header().parent_pid = 1;
    bytes.header().inherited_from = pid;
    bytes.header().control = 1;
    bytes.header().begin.monotonic_ns += begin;
    return bytes.write(folder_.path());
  };
  const fs::path file = write_session_inherited_from(gone.header().pid, 0);
  ASSERT_TRUE(window.update().ok());
  ASSERT_EQ(window.processes().size(), 2U);
  EXPECT_FALSE(window.processes()[1].was_on);
  window.end();
  EXPECT_FALSE(is_trace_on(file));
  // A trace that another process switched on stays on.
  const fs::path other_file = write_session_inherited_from(1, 1);
  {
    TraceWindow second_window(targets);
    ASSERT_TRUE(second_window.update().ok());
  }
  EXPECT_TRUE(is_trace_on(other_file));
}

TEST_F(TraceWindowTest, ASwitchIsNotLostBetweenTwoFiles) {
  SessionBytes mine = session_of_this_process();
  mine.header().control = 1;
  mine.header().state = PENSTOCK_STOPPED;
  mine.write(folder_.path());
  TraceTargets targets;
  targets.folders = {folder_.path()};
  mine.header().state = PENSTOCK_RUNNING;
  mine.header().begin.monotonic_ns += 7;
  const ScratchFolder other_folder;
  const fs::path next = folder_.path() / "next.session";
  std::thread next_file_writer([&] {
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    fs::rename(mine.write(other_folder.path()), next);  // the complete file appears at once
  });
  const auto switched = switch_trace(targets, false);
  next_file_writer.join();
  ASSERT_OK(switched);
  ASSERT_EQ(switched->size(), 1U);
  EXPECT_NE((*switched)[0].from_ns, 0);
  EXPECT_FALSE((*switched)[0].ended);
  EXPECT_FALSE(is_trace_on(next));
}

}  // namespace
}  // namespace penstock
