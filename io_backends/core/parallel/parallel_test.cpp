#include "io_backends/core/parallel/parallel.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <fstream>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "io_backends/core/system/threads.hpp"

namespace penstock {
namespace {

TEST(Parallel, EveryIndexOnce) {
  for (const uint64_t count : {0U, 1U, 3U, 4U, 5U, 63U, 64U, 65U, 1000U, 5000U})
    for (const unsigned threads : {1U, 2U, 7U, 40U})
      for (const uint64_t run : {1U, 4U, 100U}) {
        std::vector<std::atomic<int>> seen(count);
        const Result<void> done = parallel_for(count, threads, run, [&](unsigned worker, uint64_t index) {
          EXPECT_LT(worker, threads);
          ++seen[index];
          return success();
        });
        EXPECT_TRUE(done.ok());
        EXPECT_TRUE(std::all_of(seen.begin(), seen.end(), [](const auto& times) { return times == 1; }))
            << count << " by " << threads << " in runs of " << run;
      }
}

TEST(Parallel, RunsAreLongFirstAndShortAtTheEnd) {
  std::atomic<uint64_t> next{0};
  std::vector<uint64_t> lengths;
  for (IndexRun run = take_run(next, 100, 2, 4); run.begin != run.end; run = take_run(next, 100, 2, 4)) {
    EXPECT_EQ(run.end, next.load());
    lengths.push_back(run.end - run.begin);
  }
  EXPECT_EQ(lengths.front(), 4U);
  EXPECT_EQ(lengths.back(), 1U);
  EXPECT_TRUE(std::is_sorted(lengths.rbegin(), lengths.rend()));
}

TEST(Parallel, TheFirstErrorEndsIt) {
  for (const unsigned threads : {1U, 2U}) {
    std::atomic<uint64_t> called{0};
    const Result<void> done =
        parallel_for(1'000'000, threads, 4, [&](unsigned, uint64_t index) -> Result<void> {
          ++called;
          if (index == 5) return make_error(Errc::io, "the sixth");
          return success();
        });
    EXPECT_EQ(done.error().what, "the sixth");
    EXPECT_LT(called, 1'000'000U);
    if (threads == 1) {
      EXPECT_EQ(called, 6U) << "nothing behind the error";
    }
  }
}

TEST(Parallel, AnExceptionIsAnErrorAndEndsIt) {
  for (const unsigned threads : {1U, 3U}) {
    std::atomic<uint64_t> called{0};
    const Result<void> done =
        for_each_index(1'000'000, threads, 4, [&](unsigned, uint64_t index) -> Result<void> {
          ++called;
          if (index == 5) throw std::bad_alloc();
          return success();
        });
    EXPECT_EQ(done.error().code, Errc::exhausted);
    EXPECT_EQ(done.error().what, "out of memory");
    EXPECT_LT(called, 1'000'000U);
  }
  bool given_up = false;
  const Result<void> thrown = on_threads(
      1, [](unsigned) -> Result<void> { throw std::length_error("too long"); }, IfFewer::fail,
      [&] { given_up = true; });
  EXPECT_EQ(thrown.error().code, Errc::exhausted);
  EXPECT_NE(thrown.error().what.find("too long"), std::string::npos);
  EXPECT_TRUE(given_up);
}

TEST(Parallel, AnInterruptEndsOnlyWorkThatWaitsForStorage) {
  simulate_interrupt(SIGINT);
  const auto nothing = [](unsigned, uint64_t) { return success(); };
  const Result<void> stopped = parallel_for(10, 2, 1, nothing);
  const Result<void> computed = for_each_index(10, 2, 1, nothing);
  simulate_interrupt(0);
  EXPECT_EQ(stopped.error().code, Errc::interrupted);
  EXPECT_TRUE(computed.ok());
}

#ifndef PENSTOCK_ADDRESS_SANITIZER  // which needs more address space than any limit leaves
TEST(Parallel, WhereTheSystemRefusesThreadsFewerDoTheWork) {
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_AS, &before), 0);
  uint64_t pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  ASSERT_GT(pages, 0U);
  rlimit little = before;
  little.rlim_cur = pages * uint64_t(::sysconf(_SC_PAGESIZE)) + (uint64_t{64} << 20U);
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &little), 0);
  std::atomic<uint64_t> called{0};
  constexpr uint64_t kCount = 5000;  // enough for oneTBB to be used
  const Result<void> done = for_each_index(kCount, 500, 1, [&](unsigned, uint64_t) {
    ++called;
    return success();
  });
  ASSERT_EQ(::setrlimit(RLIMIT_AS, &before), 0);
  EXPECT_TRUE(done.ok());
  EXPECT_EQ(called, kCount);
}
#endif

}  // namespace
}  // namespace penstock
