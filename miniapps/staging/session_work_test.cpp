#include "miniapps/staging/session_work.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "io_backends/testing/testing.hpp"
#include "profiling/session/session_testing.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

class SessionWorkTest : public testing::Test {
 protected:
  SessionWorkTest() {
    fs::create_directories(root() / "a");
    fs::create_directories(session_);
  }

  fs::path root() const { return folder_.path() / "slow"; }
  std::string path(std::string_view name) const { return (root() / name).string(); }
  void make(std::string_view name, size_t bytes) const {
    std::ofstream(root() / name, std::ios::binary) << std::string(bytes, 'x');
  }

  // Counters of a file that one thread read from begin to end `times` times, in `pieces` reads.
  penstock_counters read(std::string_view name, uint32_t thread, uint32_t times, uint32_t pieces,
                         uint64_t bytes) {
    penstock_counters counters = bytes_.counters_of(path(name), thread, times * pieces, bytes / pieces);
    counters.opens = counters.closes = times;
    counters.size = bytes;
    counters.consecutive_reads = times * (pieces - 1);
    return counters;
  }

  Result<SessionWork> work(const SessionFilter& filter = {}) {
    bytes_.write(session_);
    const fs::path paths[] = {session_};
    session_of_test_ = open_session(paths).value();
    return work_of(session_of_test_, filter, tier_, false);
  }

  ScratchFolder folder_;
  fs::path session_ = folder_.path() / "session";
  Tier tier_ = open_tier("slow=posix:" + root().string(), kNoNamedTiers).value();
  SessionBytes bytes_;
  Session session_of_test_;
};

TEST_F(SessionWorkTest, TellsReadsOfAnEpoch) {
  make("a/1", 1000);
  make("a/2", 4000);
  bytes_.add(read("a/1", 1, 3, 1, 1000));
  bytes_.add(read("a/2", 1, 3, 4, 4000));
  const auto found = work();
  ASSERT_OK(found);
  ASSERT_EQ(found->files.size(), 2U);
  EXPECT_EQ(found->files[0].name, "a/1");
  EXPECT_DOUBLE_EQ(found->epochs, 3);
  EXPECT_EQ(found->epoch_bytes, 5000U);
  for (const FileThatWasRead& file : found->files) {
    EXPECT_DOUBLE_EQ(file.requests, 1) << "however many pieces follow each other";
    EXPECT_DOUBLE_EQ(file.request_bytes, double(file.bytes));
  }
  EXPECT_EQ(found->threads, 1U);
  EXPECT_FALSE(found->by_spans);
}

TEST_F(SessionWorkTest, ReadsHereAndThereAreManyRequests) {
  make("a/1", 10000);
  penstock_counters counters = bytes_.counters_of(path("a/1"), 1, 100, 100);
  counters.consecutive_reads = 0;
  counters.size = 10000;
  bytes_.add(counters);
  const auto found = work();
  ASSERT_OK(found);
  EXPECT_DOUBLE_EQ(found->files[0].requests, 100);
  EXPECT_DOUBLE_EQ(found->files[0].request_bytes, 100);
}

TEST_F(SessionWorkTest, CountsThreadsAndTheTimeElsewhere) {
  make("a/1", 1000);
  make("a/2", 1000);
  // Both files are used from 1 us to 2 ms after the start of the session, with 1 us in reads and 0.5 us in
  // opens and closes.
  bytes_.add(read("a/1", 1, 1, 1, 1000));
  bytes_.add(read("a/2", 2, 1, 1, 1000));
  const auto found = work();
  ASSERT_OK(found);
  EXPECT_EQ(found->threads, 2U);
  EXPECT_NEAR(found->observed_s, 1.999e-3, 1e-5);
  EXPECT_NEAR(found->think_s, 2 * (1.999e-3 - 1.5e-6), 1e-5);
}

TEST_F(SessionWorkTest, SpansOfTheProgramGoBeforeItsCalls) {
  make("a/1", 1000);
  make("a/2", 3000);
  bytes_.add(read("a/1", 1, 2, 1, 1000));
  bytes_.add(read("a/2", 1, 2, 1, 3000));
  // The spans cover half of the bytes: one second with three threads, of which one reads only for half of the
  // time.
  for (const auto& [thread, end] : {std::pair(1, 2'000'000'000), {2, 2'000'000'000}, {3, 1'500'000'000}}) {
    penstock_span span{};
    span.begin_ns = 1'000'000'000;
    span.end_ns = end;
    span.number = PENSTOCK_NO_NUMBER;
    span.bytes = thread == 1 ? 2000 : 1000;
    span.thread = uint32_t(thread);
    span.component = PENSTOCK_READ;
    bytes_.add(span);
  }
  const auto found = work();
  ASSERT_OK(found);
  EXPECT_TRUE(found->by_spans);
  EXPECT_EQ(found->threads, 3U);
  EXPECT_NEAR(found->observed_s, 1, 1e-6) << "an epoch is 4000 bytes, and 4000 were in spans";
  EXPECT_NEAR(found->think_s, 0.5, 1e-6);
}

TEST_F(SessionWorkTest, LeavesOutWhatCannotBeStaged) {
  make("a/1", 1000);
  make("a/log", 1000);
  make("a/short", 10);
  make("bad\xff", 1000);
  bytes_.add(read("a/1", 1, 1, 1, 1000));
  bytes_.add(read("a/gone", 1, 1, 1, 1000));
  bytes_.add(read("a/short", 1, 1, 1, 1000));
  bytes_.add(read("bad\xff", 1, 1, 1, 1000));
  bytes_.add(read(".penstock/manifest", 1, 1, 1, 1000));
  penstock_counters log = read("a/log", 1, 1, 1, 1000);
  log.bytes_written = 5;
  bytes_.add(log);
  const auto found = work();
  ASSERT_OK(found);
  ASSERT_EQ(found->files.size(), 1U);
  EXPECT_EQ(found->gone_files, 1U);
  EXPECT_EQ(found->shrunk_files, 1U);
  EXPECT_EQ(found->written_files, 1U);
  EXPECT_EQ(found->odd_names, 1U);
}

TEST_F(SessionWorkTest, OneFileByTwoNamesIsOne) {
  make("a/1", 1000);
  fs::create_directory_symlink(root(), folder_.path() / "link");
  tier_ = open_tier("slow=posix:" + (folder_.path() / "link").string(), kNoNamedTiers).value();
  bytes_.add(read("a/1", 1, 1, 1, 1000));
  bytes_.add_file((folder_.path() / "link" / "a/1").string(), 1, 1, 1000);
  const auto found = work();
  ASSERT_OK(found);
  ASSERT_EQ(found->files.size(), 1U);
  EXPECT_EQ(found->files[0].name, "a/1");
  EXPECT_DOUBLE_EQ(found->epochs, 2);
}

TEST_F(SessionWorkTest, AFilterChooses) {
  make("a/1", 1000);
  make("a/2", 1000);
  bytes_.add(read("a/1", 1, 1, 1, 1000));
  bytes_.add(read("a/2", 1, 1, 1, 1000));
  const auto found = work({.include = {}, .exclude = {"a/2"}});
  ASSERT_OK(found);
  EXPECT_EQ(found->files.size(), 1U);
}

TEST_F(SessionWorkTest, ASessionOfSomethingElseSaysOfWhat) {
  bytes_.add_file("/elsewhere/deep/file", 1, 1, 1000);
  EXPECT_ERRC(Errc::not_found, work(), "/elsewhere/deep");
}

TEST_F(SessionWorkTest, ATierWithoutPathsIsRefused) {
  make("a/1", 1000);
  bytes_.add(read("a/1", 1, 1, 1, 1000));
  tier_ = open_tier("mem:session-work-test", kNoNamedTiers).value();
  EXPECT_ERRC(Errc::invalid_argument, work(), "not a local folder");
}

}  // namespace
}  // namespace penstock
