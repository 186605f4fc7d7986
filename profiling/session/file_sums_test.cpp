#include "profiling/session/file_sums.hpp"

#include <gtest/gtest.h>

#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "io_backends/files/mounts.hpp"
#include "io_backends/testing/testing.hpp"
#include "profiling/report/session_top.hpp"
#include "profiling/session/roll_up.hpp"
#include "profiling/session/session_summary.hpp"
#include "profiling/session/session_testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class FileSumsTest : public testing::Test {
 protected:
  Session opened() const {
    const fs::path paths[] = {folder_.path()};
    return open_session(paths).value();
  }
  std::map<std::string, FileSum> sums_of(const Session& session, const FileFilter& wanted = {}) const {
    std::map<std::string, FileSum> files;
    FileSums(session).each(wanted, [&](const FileSum& file) { files[std::string(file.path)] = file; });
    return files;
  }
  ScratchFolder folder_;
};

TEST_F(FileSumsTest, AddsUpThreadsLayersAndProcessesOfAFile) {
  SessionBytes first(100);
  first.add_file("/data/a", 100, 2, 1000);
  first.add_file("/data/a", 101, 3, 1000);
  first.add_file("/data/a", 100, 1, 64, PENSTOCK_STDIO);
  first.add_file("/data/a", 100, 1, 7777, PENSTOCK_MPIIO);
  first.add_file("/data/b", 100, 1, 10);
  first.write(folder_.path());
  SessionBytes second(200);
  second.add_file("/data/a", 200, 4, 1000);
  second.write(folder_.path());
  const Session session = opened();
  const auto files = sums_of(session);
  ASSERT_EQ(files.size(), 2U);
  const FileSum& a = files.at("/data/a");
  EXPECT_EQ(a.all.bytes_read, 9064U) << "MPI-IO's bytes are POSIX's once more";
  EXPECT_EQ(a.all.reads, 10U);
  EXPECT_EQ(a.layers[PENSTOCK_POSIX].bytes_read, 9000U);
  EXPECT_EQ(a.layers[PENSTOCK_STDIO].bytes_read, 64U);
  EXPECT_EQ(a.layers[PENSTOCK_MPIIO].bytes_read, 7777U);
  EXPECT_EQ(a.processes, 2U);
  EXPECT_EQ(a.threads, 3U);
  EXPECT_DOUBLE_EQ(a.all.read_ns, 10'000);
  EXPECT_EQ(a.first_ns, 1'001'000'001'000);
  EXPECT_EQ(a.last_ns, 1'001'002'000'000);
  EXPECT_EQ(files.at("/data/b").layers_used, 1U << PENSTOCK_POSIX);
}

// Compressed data are longer for the program than in the file.
TEST_F(FileSumsTest, WhatHdf5MovesIsNoSizeOfTheFile) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a.h5", 100, 2, 1000);
  bytes.add_file("/data/a.h5", 100, 1, 30'000, PENSTOCK_HDF5);
  bytes.write(folder_.path());
  const FileSum file = sums_of(opened()).at("/data/a.h5");
  EXPECT_EQ(file.size, 2000U);
  EXPECT_EQ(file.layers[PENSTOCK_HDF5].bytes_read, 30'000U);
}

// A thread may have two entries of counters for a file: the second one continues the first. So only the first
// entry contains the thread's first read. The last operation may be a read.
TEST_F(FileSumsTest, AContinuedEntryCountsAsOneThread) {
  SessionBytes bytes(100);
  penstock_counters one = bytes.counters_of("/data/a", 100, 3, 100);
  one.sequential_reads = 2;
  bytes.add(one);
  one.form = PENSTOCK_WHOLE_CONTINUATION;
  one.writes = 1;
  one.last_read_ticks = one.last_ticks + 1'000'000;
  bytes.add(one);
  bytes.write(folder_.path());
  const Session session = opened();
  const auto files = sums_of(session);
  ASSERT_EQ(files.size(), 1U);
  const FileSum& a = files.at("/data/a");
  EXPECT_EQ(a.all.reads, 6U);
  EXPECT_EQ(a.all.first_reads, 1U);
  EXPECT_EQ(a.last_ns, 1'001'003'000'000);
}

TEST_F(FileSumsTest, TwoNamesWithTheSameKeyAreTwoFiles) {
  SessionBytes bytes(100);
  penstock_counters one = bytes.counters_of("/data/a", 100, 1, 100);
  bytes.add(one);
  one.name = bytes.add_name(one.file, "/data/other");
  one.bytes_read = 7;
  bytes.add(one);
  one.name = 0;  // the file has one of the two names, but which one is unknown
  one.bytes_read = 1;
  bytes.add(one);
  bytes.write(folder_.path());
  const Session session = opened();
  const auto files = sums_of(session);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_TRUE(files.at("/data/a").shares_key);
  EXPECT_TRUE(files.at("/data/other").shares_key);
  EXPECT_EQ(files.at("/data/a").all.bytes_read + files.at("/data/other").all.bytes_read, 108U);
}

TEST_F(FileSumsTest, AnEntryWithoutANameGetsTheNameOfItsKey) {
  SessionBytes first(100);
  penstock_counters counters = first.counters_of("/data/a", 100, 1, 100);
  counters.name = 0;
  first.add(counters);
  counters.file = 4711;  // no other entry has this key, and the name of this entry belongs to another file
  counters.name = first.add_name("/data/c");
  first.add(counters);
  first.write(folder_.path());
  SessionBytes second(200);
  second.add_file("/data/a", 200, 1, 1);
  second.write(folder_.path());
  const Session session = opened();
  const auto files = sums_of(session);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files.at("/data/a").all.bytes_read, 101U);
  EXPECT_EQ(files.at("").file, 4711U);
}

// The first process only opened the pipe, so its entry says that it is a regular file. The second process
// inspected the pipe, so the kind in its entry counts.
TEST_F(FileSumsTest, TheKindFromStatCountsMoreThanThatFromOpen) {
  SessionBytes first(100);
  first.add_file("/run/pipe", 100, 1, 100);
  first.add_file("/data/a", 100, 1, 100);
  first.write(folder_.path());
  SessionBytes second(200);
  penstock_counters asked = second.counters_of("/run/pipe", 200, 1, 100);
  asked.name = second.add_name("/run/pipe", PENSTOCK_OTHER_FILE);
  second.add(asked);
  penstock_counters folder = second.counters_of("/data/a", 200, 0, 0);
  // the name was that of a folder before it was that of a file
  folder.name = second.add_name("/data/a", PENSTOCK_DIRECTORY);
  second.add(folder);
  second.write(folder_.path());
  const Session session = opened();
  const auto files = sums_of(session);
  ASSERT_EQ(files.size(), 2U);
  EXPECT_EQ(files.at("/run/pipe").kind, PENSTOCK_OTHER_FILE);
  EXPECT_EQ(files.at("/data/a").kind, PENSTOCK_REGULAR);
  FileSums(session).each_entry(
      [](const penstock_counters&, const ProcessFile&, std::string_view path, unsigned kind) {
        EXPECT_EQ(kind, path == "/data/a" ? PENSTOCK_REGULAR : PENSTOCK_OTHER_FILE) << path;
      });
}

TEST_F(FileSumsTest, TheSumsOfAllPartsEqualTheWholeSum) {
  SessionBytes bytes(100);
  for (int i = 0; i < 500; ++i)
    for (uint32_t thread = 0; thread < 1 + uint32_t(i % 3); ++thread)
      bytes.add_file("/data/" + std::to_string(i), 100 + thread, 1, 10);
  bytes.write(folder_.path());
  const Session session = opened();
  const FileSums sums(session);
  for (const size_t parts : {1U, 2U, 7U, 100U}) {
    std::set<uint64_t> keys;
    uint64_t read = 0;
    for (size_t part = 0; part < parts; ++part)
      sums.each_of_part(part, parts, {}, [&](const FileSum& file) {
        EXPECT_TRUE(keys.insert(file.file).second) << "in two parts";
        read += file.all.reads;
      });
    EXPECT_EQ(keys.size(), 500U);
    EXPECT_EQ(read, sums.entries());
  }
}

TEST_F(FileSumsTest, UnknownLayersAreSkipped) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 1, 10, 99);
  bytes.write(folder_.path());
  const Session session = opened();
  EXPECT_TRUE(sums_of(session).empty());
}

TEST_F(FileSumsTest, ASummaryCountsFilesThatTheFilterLeftOut) {
  SessionBytes bytes(100);
  bytes.set_command({"python3", "train.py"});
  bytes.add_file("/data/a", 100, 2, 500);
  bytes.add_file("/usr/lib/python3.11/os.py", 100, 1, 300);
  penstock_counters pipe = bytes.counters_of("pipe:[77]", 100, 1, 40);
  pipe.name = bytes.add_name(pipe.file, "pipe:[77]", PENSTOCK_OTHER_FILE);
  bytes.add(pipe);
  penstock_counters missing{};
  missing.file = key_for_test("/nowhere");
  missing.name = bytes.add_name("/nowhere");
  missing.failures = 3;
  bytes.add(missing);
  bytes.write(folder_.path());
  const Session session = opened();
  const FileSums sums(session);
  const SessionSummary summary = summarise(session, sums, {});
  EXPECT_TRUE(summary.has_python);
  EXPECT_EQ(summary.included.files, 1U);
  EXPECT_EQ(summary.included.all.bytes_read, 1000U);
  EXPECT_EQ(summary.left_out.files, 2U);
  EXPECT_EQ(summary.left_out.all.bytes_read, 340U);
  EXPECT_EQ(summary.failed_names, 1U);
  EXPECT_DOUBLE_EQ(summary.wall_s, 10);
  EXPECT_EQ(summary.files_by_size[size_bucket(1000)], 1U);
  EXPECT_FALSE(summary.io_is_union);
  EXPECT_EQ(summarise(session, sums, {.include = {}, .exclude = {}, .all_files = true}).included.files, 3U);
}

TEST_F(FileSumsTest, WithSegmentsIoTimeIsTheUnionOverThreads) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 2, 500);
  for (const uint64_t begin : {1'000'000'000ULL, 1'000'500'000ULL})
    bytes.add(penstock_segment{.file = key_for_test("/data/a"),
                               .offset = 0,
                               .length = 500,
                               .begin_ticks = begin,
                               .end_ticks = begin + 1'000'000,
                               .thread = uint32_t(begin % 1000),
                               .call = PENSTOCK_CALL_READ,
                               .layer = PENSTOCK_POSIX,
                               .failed = 0});
  bytes.write(folder_.path());
  const Session session = opened();
  const FileSums sums(session);
  SessionSummary summary = summarise(session, sums, {});
  EXPECT_TRUE(summary.io_is_union);
  EXPECT_NEAR(summary.io_s, 0.0015, 1e-9);
  ASSERT_TRUE(summary.segments);
  double moved = 0;
  for (const double value : summary.segments->bytes_read) moved += value;
  EXPECT_NEAR(moved, 1000, 1e-6);
  summary = summarise(session, sums, {.include = {}, .exclude = {"a"}, .all_files = false});
  EXPECT_EQ(summary.segments->segments, 0U);
}

TEST_F(FileSumsTest, RollUpsAddFilesByMountFolderAndProcess) {
  SessionBytes bytes(100);
  bytes.add_file("/data/x/a", 100, 1, 10);
  bytes.add_file("/data/x/b", 101, 1, 20);
  bytes.add_file("/data/y/c", 101, 1, 5);
  bytes.write(folder_.path());
  const Session session = opened();
  const FileSums sums(session);
  RollUps folders;
  TopFiles top(2, by_bytes);
  sums.each({}, [&](const FileSum& file) {
    folders.add(folder_of(file.path), file);
    top.add(file);
  });
  const auto rows = folders.largest_rows(10);
  ASSERT_EQ(rows.size(), 2U);
  EXPECT_EQ(rows[0].name, "/data/x");
  EXPECT_EQ(rows[0].all.bytes_read, 30U);
  EXPECT_EQ(rows[0].files, 2U);
  EXPECT_EQ(rows[0].largest_file, "/data/x/b");
  ASSERT_EQ(top.ranked().size(), 2U);
  EXPECT_EQ(top.ranked()[0].path, "/data/x/b");
  EXPECT_EQ(top.ranked()[1].path, "/data/x/a");
  const auto processes = sum_by_process(session, sums, {});
  ASSERT_EQ(processes.size(), 1U);
  EXPECT_EQ(processes[0].files, 3U);
  EXPECT_EQ(processes[0].threads, 2U);
  EXPECT_EQ(processes[0].all.bytes_read, 35U);
}

TEST(MountTable, APathBelongsToTheLongestMountPoint) {
  const MountTable table({"/", "/data", "/data/fast", "/datax"});
  EXPECT_EQ(table.mount_of("/data/fast/a"), "/data/fast");
  EXPECT_EQ(table.mount_of("/data/faster/a"), "/data");
  EXPECT_EQ(table.mount_of("/data"), "/data");
  EXPECT_EQ(table.mount_of("/database"), "/");
  EXPECT_EQ(table.mount_of("pipe:[7]"), "");
}

TEST(MountTable, RecognizesPseudoFileSystems) {
  const MountTable table = MountTable::of_this_machine();
  EXPECT_TRUE(table.is_pseudo(table.mount_of("/proc/self/status")));
  EXPECT_FALSE(table.is_pseudo("/"));
  EXPECT_TRUE(is_pseudo_file_system("cgroup2"));
  EXPECT_FALSE(is_pseudo_file_system("tmpfs"));
}

TEST(MountTable, IsReadFromMountinfo) {
  std::istringstream text(
      "22 1 254:1 / / rw shared:1 - ext4 /dev/root rw\n"
      "30 22 0:25 / /mnt/two\\040words rw - tmpfs tmpfs rw\n"
      "broken\n");
  EXPECT_EQ(mount_points(text), (std::vector<std::string>{"/", "/mnt/two words"}));
}

TEST_F(FileSumsTest, TheChangeBetweenTwoInspectionsIsTheirDifference) {
  SessionBytes bytes(100);
  bytes.add_file("/data/a", 100, 1, 100);
  bytes.add_file("/data/b", 100, 1, 5000);
  bytes.write(folder_.path());
  const SessionProgress first = measure_progress(opened(), {});
  EXPECT_EQ(first.processes, 0U);
  const Change since_begin = change_of(nullptr, first, 1);
  EXPECT_DOUBLE_EQ(since_begin.seconds, 10);
  EXPECT_EQ(since_begin.all.bytes_read, 5100U);
  EXPECT_EQ(since_begin.files, 2U);
  ASSERT_EQ(since_begin.hottest.size(), 1U);
  EXPECT_EQ(since_begin.hottest[0].path, "/data/b");
  bytes.add_file("/data/a", 101, 2, 300);
  bytes.write(folder_.path());
  const SessionProgress second = measure_progress(opened(), {});
  const Change change = change_of(&first, second, 10);
  EXPECT_EQ(change.all.bytes_read, 600U);
  EXPECT_EQ(change.files, 1U);
  ASSERT_EQ(change.hottest.size(), 1U);
  EXPECT_EQ(change.hottest[0].path, "/data/a");
  EXPECT_EQ(change.hottest[0].bytes_read, 600U);
}

TEST_F(FileSumsTest, ProgressSeparatesTwoNamesWithTheSameKey) {
  SessionBytes bytes(100);
  penstock_counters one = bytes.counters_of("/data/a", 100, 1, 100);
  bytes.add(one);
  one.name = bytes.add_name(one.file, "/data/other");
  one.bytes_read = 7000;
  bytes.add(one);
  bytes.write(folder_.path());
  const SessionProgress first = measure_progress(opened(), {});
  ASSERT_EQ(first.files.size(), 2U);
  EXPECT_EQ(first.all.bytes_read, 7100U);
  one.thread = 101;
  one.bytes_read = 50;
  bytes.add(one);
  bytes.write(folder_.path());
  const SessionProgress second = measure_progress(opened(), {});
  const Change change = change_of(&first, second, 10);
  EXPECT_EQ(change.files, 1U);
  ASSERT_EQ(change.hottest.size(), 1U);
  EXPECT_EQ(change.hottest[0].path, "/data/other");
  EXPECT_EQ(change.hottest[0].bytes_read, 50U);
  const Change since_begin = change_of(nullptr, second, 10);
  ASSERT_EQ(since_begin.hottest.size(), 2U);
  EXPECT_EQ(since_begin.hottest[0].path, "/data/other");
  EXPECT_EQ(since_begin.hottest[0].bytes_read, 7050U);
  EXPECT_EQ(since_begin.hottest[1].bytes_read, 100U);
}

TEST(Folders, OfPaths) {
  EXPECT_EQ(folder_of("/a/b"), "/a");
  EXPECT_EQ(folder_of("/b"), "/");
  EXPECT_EQ(folder_of("b"), "");
}

TEST(SizeBuckets, EndAtTheSizesInTheirNames) {
  EXPECT_EQ(size_bucket_name(size_bucket(0)), "0_100");
  EXPECT_EQ(size_bucket_name(size_bucket(100)), "0_100");
  EXPECT_EQ(size_bucket_name(size_bucket(101)), "100_1k");
  EXPECT_EQ(size_bucket_name(size_bucket(4ULL << 20U)), "1m_4m");
  EXPECT_EQ(size_bucket_name(size_bucket(UINT64_MAX)), "1g_plus");
}

}  // namespace
}  // namespace penstock
