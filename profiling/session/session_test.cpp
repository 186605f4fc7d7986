#include "profiling/session/session.hpp"

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cerrno>
#include <fstream>

#include "io_backends/testing/testing.hpp"
#include "profiling/report/session_text.hpp"
#include "profiling/report/window_report.hpp"
#include "profiling/session/session_coverage.hpp"
#include "profiling/session/session_testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class SessionTest : public testing::Test {
 protected:
  Session opened() const {
    const fs::path paths[] = {folder_.path()};
    return open_session(paths).value();
  }
  // A child whose file begins at 2 s and ends at `end_ns`. The kernel and its only thread have counted
  // `read_bytes`.
  static SessionBytes child_of(uint32_t parent, uint32_t pid, uint64_t read_bytes,
                               int64_t end_ns = 3'000'000'000) {
    SessionBytes child(pid);
    child.header().parent_pid = parent;
    child.header().begin.monotonic_ns = 2'000'000'000;
    child.header().end_monotonic_ns = end_ns;
    child.set_kernel(0, read_bytes);
    child.add_thread(pid, read_bytes, 0);
    return child;
  }
  ScratchFolder folder_;
};

TEST_F(SessionTest, FilesAreGroupedByProcess) {
  SessionBytes parent(100);
  parent.write(folder_.path());
  SessionBytes before(200);
  before.header().parent_pid = 100;
  before.header().state = PENSTOCK_EXECUTED;
  before.header().begin.monotonic_ns = 2'000'000'000;
  before.header().begin_realtime_ns = 1'002'000'000'000;
  before.write(folder_.path());
  SessionBytes after = before;
  after.header().begin.monotonic_ns = 3'000'000'000;
  after.header().begin_realtime_ns = 1'003'000'000'000;
  after.write(folder_.path());
  SessionBytes reused(200);
  reused.header().process_start = 8;
  reused.header().begin.monotonic_ns = 5'000'000'000;
  reused.header().begin_realtime_ns = 1'005'000'000'000;
  reused.write(folder_.path());
  const Session session = opened();
  ASSERT_EQ(session.processes.size(), 3U);
  EXPECT_EQ(session.processes[0].process_files.size(), 1U);
  EXPECT_EQ(session.processes[1].process_files.size(), 2U);
  EXPECT_EQ(session.processes[1].last().header().begin.monotonic_ns, 3'000'000'000);
  EXPECT_EQ(session.processes[2].first().header().process_start, 8U);
  EXPECT_TRUE(session.problems.empty());
}

TEST_F(SessionTest, ADamagedFileDoesNotHideTheOthers) {
  SessionBytes(100).write(folder_.path());
  std::ofstream(folder_.path() / "7-7.session") << "torn";
  std::ofstream(folder_.path() / "session.json") << "{";
  const Session session = opened();
  EXPECT_EQ(session.process_files.size(), 1U);
  ASSERT_EQ(session.problems.size(), 1U);
  EXPECT_NE(session.problems[0].find("7-7.session"), std::string::npos);
}

TEST_F(SessionTest, ATruncatedFileIsReportedAndHasNoCoverage) {
  SessionBytes cut(100);
  cut.set_kernel(0, 1000);
  cut.add_thread(5, 1000, 0);
  cut.add_file("/data/one", 1000, 1, 1);
  const fs::path path = cut.write(folder_.path());
  SessionBytes whole(200);
  whole.set_kernel(0, 100);
  whole.add_thread(6, 100, 0);
  whole.write(folder_.path());
  EXPECT_EQ(coverage_of(opened()).rchar.kernel_bytes, 1100U);
  fs::resize_file(path, PENSTOCK_HEADER_BYTES + PENSTOCK_BLOCK_GRANULE + 100);
  const Session session = opened();
  ASSERT_EQ(session.process_files.size(), 2U);
  ASSERT_EQ(session.problems.size(), 1U);
  EXPECT_NE(session.problems[0].find(path.string()), std::string::npos);
  const SessionCoverage coverage = coverage_of(session);
  EXPECT_EQ(coverage.cut_processes, 1U);
  EXPECT_EQ(coverage.unknown_processes, 1U);
  EXPECT_EQ(coverage.rchar.kernel_bytes, 100U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 100U);
}

TEST_F(SessionTest, OfASessionAndItsSnapshotOnlyTheLaterStateCounts) {
  SessionBytes process(100);
  process.header().state = PENSTOCK_RUNNING;
  process.header().end_monotonic_ns = 2'000'000'000;  // when the kernel's counts were last read
  process.add_file("/data/one", 1000, 1, 1);
  const ScratchFolder snapshot;
  process.write(snapshot.path());
  process.header().state = PENSTOCK_ENDED;
  process.header().end_monotonic_ns = 3'000'000'000;
  process.write(folder_.path());
  SessionBytes(200).write(folder_.path());
  for (const auto& [first, second] :
       {std::pair(folder_.path(), snapshot.path()), std::pair(snapshot.path(), folder_.path())}) {
    const fs::path paths[] = {first, second};
    const Session session = open_session(paths).value();
    ASSERT_EQ(session.process_files.size(), 2U);
    for (const auto& process_file : session.process_files)
      EXPECT_EQ(process_file->path().parent_path(), folder_.path());
    ASSERT_EQ(session.problems.size(), 1U);
    EXPECT_NE(session.problems[0].find("1 file of '" + snapshot.path().string()), std::string::npos);
  }
}

// If the later file is truncated, the calls that were recorded after the snapshot are missing. If the
// snapshot is truncated, nothing is missing, because the later file has everything.
TEST_F(SessionTest, ATruncatedFileIsUnreadOnlyIfItIsTheLaterState) {
  SessionBytes process(100);
  process.header().state = PENSTOCK_RUNNING;
  process.header().end_monotonic_ns = 2'000'000'000;
  process.add_file("/data/one", 1000, 1, 1);
  const ScratchFolder snapshot;
  const fs::path earlier = process.write(snapshot.path());
  process.header().state = PENSTOCK_ENDED;
  process.header().end_monotonic_ns = 3'000'000'000;
  const fs::path later = process.write(folder_.path());
  const fs::path paths[] = {folder_.path(), snapshot.path()};
  const auto length = fs::file_size(later);
  fs::resize_file(earlier, length - 1);
  Session session = open_session(paths).value();
  EXPECT_EQ(session.unread_files, 0U);
  EXPECT_EQ(session.process_files[0]->path(), later);
  EXPECT_EQ(session.problems.size(), 2U);
  fs::resize_file(earlier, length);
  fs::resize_file(later, length - 1);
  session = open_session(paths).value();
  EXPECT_EQ(session.unread_files, 1U);
  EXPECT_EQ(session.process_files[0]->path(), earlier);
  EXPECT_EQ(session.problems.size(), 1U);
  fs::remove(earlier);
  EXPECT_EQ(open_session(paths).value().unread_files, 1U);
}

TEST_F(SessionTest, PathsWithoutASessionAreErrors) {
  const fs::path none[] = {folder_.path() / "none"};
  EXPECT_ERRC(Errc::not_found, open_session(none));
  const fs::path empty[] = {folder_.path()};
  EXPECT_TRUE(fails_with(Errc::not_found, open_session(empty), "no session file"));
  std::ofstream(folder_.path() / "7-7.session") << "torn";
  EXPECT_ERRC(Errc::corrupt, open_session(empty));
  ASSERT_EQ(::mkfifo((folder_.path() / "8-8.session").c_str(), 0600), 0);
  EXPECT_ERRC(Errc::corrupt, open_session(empty));  // and does not wait for a writer of the FIFO
}

TEST_F(SessionTest, BytesThatAreCutOffDuringReadingBecomeZeros) {
  SessionBytes bytes(100);
  for (int i = 0; i < 200; ++i) bytes.add_file("/data/" + std::to_string(i), 100, 1, 1);
  const fs::path path = bytes.write(folder_.path());
  const auto process_file = ProcessFile::open(path);
  ASSERT_OK(process_file);
  fs::resize_file(path, PENSTOCK_HEADER_BYTES);
  uint64_t read = 0;
  (*process_file)
      ->view()
      .each<penstock_counters>(PENSTOCK_BLOCK_COUNTERS, [&](const penstock_counters& counters, uint64_t) {
        read += counters.bytes_read;
      });
  EXPECT_EQ(read, 0U);
  EXPECT_TRUE((*process_file)->cut_while_read());
}

TEST_F(SessionTest, ProgramsThatWroteNoFileAreListed) {
  SessionBytes parent(100);
  parent.add_event(PENSTOCK_EVENT_NOT_LOADED, 2'000'000'000, PENSTOCK_STATIC, "/bin/static");
  parent.add_event(PENSTOCK_EVENT_SPAWN, 2'000'000'000, 300, "/bin/static");
  parent.add_event(PENSTOCK_EVENT_SPAWN, 2'000'000'000, 301, "/bin/other");
  parent.add_event(PENSTOCK_EVENT_NOT_LOADED, 2'000'000'000, 77, "/bin/odd");
  parent.add_event(PENSTOCK_EVENT_SPAWN, 2'000'000'000, 302, "/bin/odd");
  parent.add_event(PENSTOCK_EVENT_SPAWN, 2'000'000'000, 200, "/bin/watched");
  parent.write(folder_.path());
  SessionBytes child(200);
  child.header().begin.monotonic_ns = 2'500'000'000;
  child.write(folder_.path());
  SessionBytes gone(400);
  gone.header().state = PENSTOCK_EXECUTED;
  gone.add_event(PENSTOCK_EVENT_EXEC, 2'000'000'000, 0, "/bin/tried");
  gone.add_event(PENSTOCK_EVENT_NOT_LOADED, 3'000'000'000, PENSTOCK_GAINS_RIGHTS, "/bin/setuid");
  gone.add_event(PENSTOCK_EVENT_EXEC, 3'000'000'000, 0, "/bin/setuid");
  gone.write(folder_.path());
  const Session session = opened();
  std::vector<std::tuple<std::string_view, uint32_t, penstock_not_loaded>> found;
  for (const UnwatchedProgram& program : session.unwatched)
    found.emplace_back(program.program, program.pid, program.not_loaded);
  const decltype(found) expected = {{"/bin/static", 300, PENSTOCK_STATIC},
                                    {"/bin/other", 301, PENSTOCK_LOADED},
                                    {"/bin/odd", 302, PENSTOCK_LOADED},
                                    {"/bin/setuid", 400, PENSTOCK_GAINS_RIGHTS}};
  EXPECT_EQ(found, expected);
}

TEST_F(SessionTest, ProgramsThatAnAttachedProcessStartsAreMarked) {
  SessionBytes attached(100);
  attached.header().begun = PENSTOCK_START_REASON_ATTACHED;
  attached.add_event(PENSTOCK_EVENT_SPAWN, 2'000'000'000, 300, "/bin/sh");
  attached.write(folder_.path());
  SessionBytes fork(200);
  fork.header().parent_pid = 100;
  fork.header().forked = 1;
  fork.header().state = PENSTOCK_EXECUTED;
  fork.add_event(PENSTOCK_EVENT_EXEC, 3'000'000'000, 0, "/bin/ls");
  fork.write(folder_.path());
  const Session session = opened();
  ASSERT_EQ(session.unwatched.size(), 2U);
  EXPECT_TRUE(session.unwatched[0].started_by_attached);
  EXPECT_TRUE(session.unwatched[1].started_by_attached);
}

TEST_F(SessionTest, ReportsWhyAFileCouldNotGrow) {
  SessionBytes bytes(100);
  bytes.header().dropped_segments = 3;
  bytes.header().no_room = ENOSPC;
  bytes.write(folder_.path());
  EXPECT_EQ(dropped_calls_text(drops_of(opened())),
            "3 calls of the trace (the session could not grow: No space left on device)");
}

TEST_F(SessionTest, ReadsCommandLinesAndRecognizesPython) {
  SessionBytes bytes(100);
  bytes.set_command({"/usr/bin/python3.11", "", "train.py"});
  bytes.write(folder_.path());
  const Session session = opened();
  EXPECT_EQ(session.process_files[0]->command(),
            (std::vector<std::string_view>{"/usr/bin/python3.11", "", "train.py"}));
  EXPECT_TRUE(session.process_files[0]->is_python());
}

TEST_F(SessionTest, TheKernelsFinalCountsGoOnlyIntoTheNewestFile) {
  SessionBytes first(100);
  first.header().state = PENSTOCK_EXECUTED;
  first.set_kernel(1, 2);
  first.write(folder_.path());
  SessionBytes second(100);
  second.header().begin.monotonic_ns = 4'000'000'000;
  second.header().state = PENSTOCK_RUNNING;
  second.write(folder_.path());
  penstock_kernel_io io{};
  io.rchar = 77;
  ASSERT_OK(complete_process_file(folder_.path(), 100, io, 12'000'000'000));
  ASSERT_OK(complete_process_file(folder_.path(), 999, io, 1));
  const Session session = opened();
  EXPECT_EQ(session.process_files[0]->header().kernel_end.rchar, 2U);
  EXPECT_EQ(session.process_files[1]->header().kernel_end.rchar, 77U);
  EXPECT_EQ(session.process_files[1]->header().kernel_end_known, 1U);
  EXPECT_EQ(session.process_files[1]->end_monotonic_ns(), 12'000'000'000);
}

TEST_F(SessionTest, CoverageSubtractsReapedChildrenFromTheirParent) {
  SessionBytes parent(100);
  parent.set_kernel(1000, 10'000);  // 9000 bytes since the file began, of which 6000 are the child's
  parent.add_thread(100, 3000, 0);
  parent.write(folder_.path());
  SessionBytes child = child_of(100, 200, 5500);
  child.set_kernel(500, 6000);  // 500 bytes were read before the library was loaded
  child.write(folder_.path());
  const SessionCoverage coverage = coverage_of(opened());
  EXPECT_EQ(coverage.rchar.kernel_bytes, 3000U + 5500U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 3000U + 5500U);
  EXPECT_DOUBLE_EQ(coverage.rchar.fraction(), 1);
  EXPECT_EQ(coverage.unknown_processes, 0U);
  EXPECT_EQ(coverage.threads, 2U);
}

TEST_F(SessionTest, CallsAfterTheLastCountOfTheKernelAreAddedToIt) {
  SessionBytes parent(100);
  parent.set_kernel(1000, 10'000);  // 9000 bytes until the end was read: 6000 of the child, and 3000
  parent.header().counted_end_is_known = 1;
  parent.header().counted_end_read = 2500;  // 500 of the 3000 were not seen
  parent.add_thread(100, 2600, 0);          // 100 more after that
  parent.write(folder_.path());
  SessionBytes child = child_of(100, 200, 6000);
  child.set_kernel(0, 5900);
  child.header().counted_end_is_known = 1;
  child.header().counted_end_read = 5900;
  child.write(folder_.path());
  const SessionCoverage coverage = coverage_of(opened());
  EXPECT_EQ(coverage.rchar.kernel_bytes, 3100U + 6000U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 2600U + 6000U);
  EXPECT_EQ(coverage.unknown_processes, 0U);
}

TEST_F(SessionTest, MissingThreadsDoNotChangeTheCountOfTheKernel) {
  SessionBytes process(100);
  process.set_kernel(1000, 4000);
  process.header().counted_end_is_known = 1;
  process.header().counted_end_read = 3000;
  process.add_thread(100, 1000, 0);
  process.write(folder_.path());
  const SessionCoverage coverage = coverage_of(opened());
  EXPECT_EQ(coverage.rchar.kernel_bytes, 3000U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 1000U);
}

TEST_F(SessionTest, AKilledChildIsComparedTogetherWithTheParentThatReapedIt) {
  SessionBytes parent(100);
  parent.set_kernel(0, 10'000);
  parent.add_thread(100, 4000, 0);
  parent.write(folder_.path());
  SessionBytes child(200);
  child.header().parent_pid = 100;
  child.header().state = PENSTOCK_RUNNING;
  child.header().end_monotonic_ns = 0;
  child.header().begin.monotonic_ns = 2'000'000'000;
  child.header().begin.ticks = 2'000'000'000;
  child.add_thread(200, 6000, 0);
  child.write(folder_.path());
  const SessionCoverage coverage = coverage_of(opened());
  EXPECT_EQ(coverage.rchar.kernel_bytes, 10'000U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 10'000U);
  EXPECT_EQ(coverage.unknown_processes, 0U);
}

TEST_F(SessionTest, AnUnreapedChildIsRecognizedByItsParentsCounters) {
  SessionBytes parent(100);
  parent.set_kernel(0, 5000);  // the kernel added only the first child's bytes to the parent
  parent.write(folder_.path());
  for (uint32_t child = 0; child < 2; ++child)
    child_of(100, 200 + child, 5000, 3'000'000'000 + child).write(folder_.path());
  const SessionCoverage coverage = coverage_of(opened());
  EXPECT_EQ(coverage.rchar.kernel_bytes, 10'000U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 10'000U);
}

TEST_F(SessionTest, AForkWithoutAFileDoesNotSeparateParentAndChild) {
  SessionBytes parent(100);
  parent.set_kernel(0, 10'000);
  parent.add_thread(100, 4000, 0);
  parent.add_event(PENSTOCK_EVENT_FORK, 2'000'000'000, 150, "");
  parent.write(folder_.path());
  SessionBytes grandchild = child_of(150, 200, 5000);
  grandchild.set_kernel(1000, 6000);
  grandchild.write(folder_.path());
  const SessionCoverage coverage = coverage_of(opened());
  EXPECT_EQ(coverage.rchar.kernel_bytes, 4000U + 5000U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 9000U);
}

// The kernel adds a child's counts to its parent only when the parent waits for it.
TEST_F(SessionTest, AChildThatWasNotReapedIsNotSubtracted) {
  for (const bool waited : {false, true}) {
    SessionBytes parent(100);
    parent.set_kernel(0, waited ? 9000 : 4000);
    parent.add_thread(100, 4000, 0);
    parent.add_event(PENSTOCK_EVENT_FORK, 2'000'000'000, 200, "");
    if (waited) parent.add_event(PENSTOCK_EVENT_REAP, 4'000'000'000, 200, "");
    parent.write(folder_.path());
    child_of(100, 200, 5000).write(folder_.path());
    const SessionCoverage coverage = coverage_of(opened());
    EXPECT_EQ(coverage.rchar.kernel_bytes, 9000U) << waited;
    EXPECT_EQ(coverage.rchar.recorded_bytes, 9000U) << waited;
  }
}

// The events tell what a killed process had waited for, although its last call was before its child's end.
TEST_F(SessionTest, AKilledProcessThatHadReapedChildrenIsNotCountedTwice) {
  SessionBytes parent(100);
  parent.set_kernel(0, 10'000);  // 1000 of its own, and those of the others
  parent.add_thread(100, 1000, 0);
  parent.add_event(PENSTOCK_EVENT_REAP, 5'000'000'000, 200, "");
  parent.write(folder_.path());
  SessionBytes killed(200);
  killed.header().parent_pid = 100;
  killed.header().state = PENSTOCK_RUNNING;
  killed.header().end_monotonic_ns = 0;
  killed.header().begin.monotonic_ns = 2'000'000'000;
  killed.header().begin.ticks = 2'000'000'000;
  killed.add_thread(200, 2000, 0);
  killed.add_event(PENSTOCK_EVENT_REAP, 2'500'000'000, 300, "");
  killed.write(folder_.path());
  SessionBytes grandchild = child_of(200, 300, 7000, 4'000'000'000);
  grandchild.header().begin.monotonic_ns = 2'100'000'000;
  grandchild.write(folder_.path());
  const SessionCoverage coverage = coverage_of(opened());
  EXPECT_EQ(coverage.rchar.kernel_bytes, 10'000U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 10'000U);
  EXPECT_EQ(coverage.unknown_processes, 0U);
}

TEST_F(SessionTest, ProcessesOfSeveralPidNamespacesAreToldApart) {
  SessionBytes outer(100);
  outer.header().pid_namespace = 7;
  outer.set_kernel(0, 9000);
  outer.add_thread(100, 1000, 0);
  for (const uint32_t pid : {501U, 502U}) outer.add_event(PENSTOCK_EVENT_FORK, 2'000'000'000, pid, "");
  outer.add_event(PENSTOCK_EVENT_REAP, 5'000'000'000, 501, "");
  outer.write(folder_.path());
  // Both are the first process of their namespace. One knows its parent, the other its pid outside.
  for (const uint32_t space : {8U, 9U}) {
    SessionBytes first(1);
    first.header().pid_namespace = space;
    first.header().kernel_pid = space == 8 ? 501 : 1;
    first.header().parent_pid = space == 8 ? 0 : 100;
    first.header().parent_namespace = space == 8 ? 8 : 7;
    first.header().begin.monotonic_ns = 2'000'000'000 + space;
    first.header().end_monotonic_ns = 3'000'000'000 + space;
    first.set_kernel(0, 4000);
    first.add_thread(1, 4000, 0);
    first.write(folder_.path());
  }
  const Session session = opened();
  EXPECT_EQ(session.processes.size(), 3U);
  EXPECT_TRUE(session.unwatched.empty());
  const SessionCoverage coverage = coverage_of(session);
  EXPECT_EQ(coverage.rchar.kernel_bytes, 9000U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 9000U);
}

TEST_F(SessionTest, ForkedChildrenThatCouldMakeNoFileAreNamed) {
  SessionBytes parent(100);
  parent.header().lost_children = PENSTOCK_LOST_CHILDREN + 2;
  parent.header().gave_up_rights = 2;
  parent.header().lost[0] = {.pid = 200, .failed = EACCES};
  parent.header().lost[1] = {.pid = 201, .failed = EPERM};
  parent.write(folder_.path());
  const Session session = opened();
  ASSERT_EQ(session.unwatched.size(), size_t{PENSTOCK_LOST_CHILDREN});
  EXPECT_EQ(session.unwatched[0].pid, 200U);
  EXPECT_TRUE(session.unwatched[0].is_fork);
  EXPECT_NE(reason_text(session.unwatched[0]).find("Permission denied"), std::string::npos);
  EXPECT_NE(reason_text(session.unwatched[1]).find("restricted"), std::string::npos);
  EXPECT_EQ(session.problems.size(), 1U);
}

TEST_F(SessionTest, AProcessWhoseFirstCountsAreNotKnownHasUnknownCoverage) {
  SessionBytes bytes(100);
  bytes.set_kernel(0, 5000);
  bytes.header().kernel_begin_is_known = 2;
  bytes.add_thread(100, 4000, 0);
  bytes.write(folder_.path());
  EXPECT_EQ(coverage_of(opened()).unknown_processes, 1U);
}

TEST_F(SessionTest, AKilledProcessHasUnknownCoverage) {
  SessionBytes killed(100);
  killed.header().state = PENSTOCK_RUNNING;
  killed.header().end_monotonic_ns = 0;
  killed.add_thread(100, 6000, 0);
  killed.write(folder_.path());
  const SessionCoverage coverage = coverage_of(opened());
  EXPECT_EQ(coverage.unknown_processes, 1U);
  EXPECT_EQ(coverage.rchar.kernel_bytes, 0U);
  EXPECT_EQ(coverage.rchar.recorded_bytes, 0U);
}

TEST_F(SessionTest, EachWindowHasCountersOfItsOwn) {
  SessionBytes before(100);
  before.header().state = PENSTOCK_STOPPED;
  before.add_file("/data/a", 100, 3, 1000);
  before.write(folder_.path());
  SessionBytes window(100);
  window.header().begun = PENSTOCK_START_REASON_CALLED;
  window.header().begin.monotonic_ns = 3'000'000'000;
  window.header().begin_realtime_ns = 1'003'000'000'000;
  window.header().end_monotonic_ns = 5'000'000'000;
  window.add_event(PENSTOCK_EVENT_WINDOW, 2000, 1, "epoch 3");
  window.add_file("/data/a", 100, 5, 1000);
  window.add_file("/data/b", 101, 1, 500);
  window.write(folder_.path());
  const Session session = opened();
  const std::vector<SessionWindow> windows = windows_of(session, {});
  ASSERT_EQ(windows.size(), 2U);
  EXPECT_EQ(windows[0].number, 0U);
  EXPECT_EQ(windows[0].all.bytes_read, 3000U);
  EXPECT_EQ(windows[1].number, 1U);
  EXPECT_EQ(windows[1].label, "epoch 3");
  EXPECT_EQ(windows[1].all.bytes_read, 5500U);
  EXPECT_EQ(windows[1].files, 2U);
  EXPECT_DOUBLE_EQ(windows[1].wall_s, 2.0);
  EXPECT_DOUBLE_EQ(windows[1].read_bytes_per_s(), 2750.0);
  EXPECT_EQ(window_rows(windows, 1, {}).not_shown, 1U);
  std::string json;
  append_window_json(json, windows[1]);
  EXPECT_NE(json.find("\"label\":\"epoch 3\""), std::string::npos) << json;
}

}  // namespace
}  // namespace penstock
