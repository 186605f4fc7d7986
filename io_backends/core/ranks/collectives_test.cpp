#include "io_backends/core/ranks/collectives.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <string>
#include <thread>

#include "io_backends/core/ranks/ranks_testing.hpp"
#include "io_backends/core/system/interrupt.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;

Error no_room(const std::string& what = "no room") {
  return Error{Errc::no_space, ENOSPC, what};
}

TEST(Collectives, TheFirstError) {
  RankThreads::run(3, [](Communicator& ranks) {
    EXPECT_TRUE(all_ok(ranks, success()).ok());
    const auto some = all_ok(ranks, ranks.rank() == 0 ? success() : Result<void>(no_room()));
    ASSERT_FALSE(some.ok());
    EXPECT_EQ(some.error().code, Errc::no_space);
    EXPECT_EQ(some.error().sys_errno, ENOSPC);
    EXPECT_EQ(some.error().what, "on rank 1 of 3: no room");
    EXPECT_EQ(all_ok(ranks, no_room()).error().what, "no room");
  });
}

TEST(Collectives, RootWorksAloneAndAllGetItsValue) {
  std::atomic<int> calls{0};
  RankThreads::run(3, [&](Communicator& ranks) {
    const auto work = [&]() -> Result<std::string> {
      ++calls;
      return "rank " + std::to_string(ranks.rank());
    };
    EXPECT_EQ(on_root(ranks, work).value(), "rank 0");
    const auto numbers = on_root(ranks, []() -> Result<std::vector<uint64_t>> { return {{3, 5}}; });
    EXPECT_EQ(numbers.value(), (std::vector<uint64_t>{3, 5}));
    EXPECT_TRUE(on_root(ranks, []() -> Result<std::string> { return std::string(); }).value().empty());
    EXPECT_TRUE(on_root(ranks, []() -> Result<bool> { return true; }).value());
    const auto failed =
        on_root(ranks, [&]() -> Result<bool> { return no_room(ranks.root() ? "at root" : "elsewhere"); });
    ASSERT_FALSE(failed.ok());
    EXPECT_EQ(failed.error().sys_errno, ENOSPC);
    EXPECT_EQ(failed.error().what, "at root");
    EXPECT_TRUE(on_root(ranks, [&] { return ranks.root() ? success() : Result<void>(no_room()); }).ok());
  });
  EXPECT_EQ(calls, 1);
  EXPECT_EQ(on_root(*single_process(), []() -> Result<void> { return no_room(); }).error().what, "no room");
}

TEST(Collectives, AnExceptionOfOneRankIsAnErrorOfAll) {
  RankThreads::run(3, [](Communicator& ranks) {
    const auto work = [&]() -> Result<void> {
      if (ranks.rank() == 2) throw std::bad_alloc();
      return success();
    };
    const auto done = all_ok(ranks, work);
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, Errc::exhausted);
    const auto root = on_root(ranks, []() -> Result<void> { throw std::bad_alloc(); });
    ASSERT_FALSE(root.ok());
    EXPECT_EQ(root.error().code, Errc::exhausted);
  });
}

TEST(Collectives, EachRankGetsTheValuesOfAll) {
  RankThreads::run(3, [](Communicator& ranks) {
    EXPECT_EQ(gather<double>(ranks, 0.5 * ranks.rank()).value(), (std::vector<double>{0, 0.5, 1}));
  });
  EXPECT_EQ(gather<int>(*single_process(), 7).value(), std::vector<int>{7});
}

TEST(Collectives, AFailureOnOneRankStopsTheWorkOfTheOthers) {
  RankThreads::run(3, [](Communicator& ranks) {
    std::atomic<bool> stopped{false};
    const auto work = [&]() -> Result<void> {
      if (ranks.rank() == 2) return no_room();
      while (!stopped) std::this_thread::sleep_for(1ms);
      return success();
    };
    const auto done = all_ok(ranks, work, [&] { stopped = true; });
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().what, "on rank 2 of 3: no room");
  });
}

TEST(Collectives, AnExceptionOfTheWorkIsAFailure) {
  RankThreads::run(2, [](Communicator& ranks) {
    const auto work = [&]() -> Result<void> {
      if (ranks.rank() == 1) throw std::bad_alloc();
      return success();
    };
    const auto done = all_ok(ranks, work, [] {});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, Errc::exhausted);
  });
}

TEST(Collectives, WaitsForTheSlowestRank) {
  std::atomic<int> finished{0};
  RankThreads::run(3, [&](Communicator& ranks) {
    const auto work = [&]() -> Result<void> {
      std::this_thread::sleep_for(ranks.rank() * 60ms);
      ++finished;
      return success();
    };
    EXPECT_TRUE(all_ok(ranks, work, [] { ADD_FAILURE() << "nobody failed"; }).ok());
    EXPECT_EQ(finished, 3);
  });
}

TEST(Collectives, ASignalStopsTheWorkOfAll) {
  RankThreads::run(2, [](Communicator& ranks) {
    const auto work = [&]() -> Result<void> {
      if (ranks.root()) simulate_interrupt(SIGTERM);
      while (!interrupted()) std::this_thread::sleep_for(1ms);
      return check_interrupt();
    };
    const auto done = all_ok(ranks, work, [] {});
    ASSERT_FALSE(done.ok());
    EXPECT_EQ(done.error().code, Errc::interrupted);
  });
  simulate_interrupt(0);
}

TEST(Collectives, ASignalReachesARankInACollectiveCall) {
  RankThreads::run(2, [](Communicator& ranks) {
    if (!ranks.root()) return ranks.report_signal(SIGTERM);
    const SignalsForAll signals(ranks);
    while (!interrupted()) std::this_thread::sleep_for(1ms);
    EXPECT_EQ(interrupt_signal(), SIGTERM);
  });
  RankThreads::run(2,
                   [](Communicator& ranks) {  // the signal from above is still set, and rank 0 reports it
                     if (ranks.root()) {
                       const SignalsForAll signals(ranks);
                       EXPECT_TRUE(ranks.barrier().ok());
                     } else {
                       while (ranks.heard_signal() == 0) std::this_thread::sleep_for(1ms);
                       EXPECT_TRUE(ranks.barrier().ok());
                     }
                   });
  simulate_interrupt(0);
}

}  // namespace
}  // namespace penstock
