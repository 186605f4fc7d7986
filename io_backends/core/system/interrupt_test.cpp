#include "io_backends/core/system/interrupt.hpp"

#include <atomic>
#include <chrono>
#include <csignal>
#include <thread>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;

TEST(Interrupt, TwoSignalsAtOnceAreOneRequest) {
  const auto begin = Clock::now();
  const bool lived_on = in_child_process([] {
    catch_interrupts();
    ::raise(SIGINT);
    ::raise(SIGINT);
    ::raise(SIGTERM);
    EXPECT_EQ(interrupt_signal(), SIGINT);
    EXPECT_ERRC(Errc::interrupted, check_interrupt());
  });
  if (Clock::now() - begin >= 1s)
    GTEST_SKIP() << "this machine is too slow: the second signal counts as a request of its own";
  EXPECT_TRUE(lived_on) << "a terminal and the parent both tell a child: it must still write what it has";
}

TEST(Interrupt, AClosedTerminalAndTheLimitOfProcessorTimeAreRequests) {
  for (const int signal : {SIGHUP, SIGXCPU}) {
    EXPECT_TRUE(in_child_process([&] {
      std::signal(signal, SIG_DFL);
      catch_interrupts();
      ::raise(signal);
      EXPECT_EQ(interrupt_signal(), signal);
    }));
    EXPECT_TRUE(in_child_process([&] {
      std::signal(signal, SIG_IGN);
      catch_interrupts();
      ::raise(signal);
      EXPECT_FALSE(interrupted());
    }));
  }
}

TEST(Interrupt, TheLimitOfProcessorTimeIsToldEverySecond) {
  EXPECT_TRUE(in_child_process([] {
    catch_interrupts();
    ::raise(SIGXCPU);
    std::this_thread::sleep_for(1100ms);
    ::raise(SIGXCPU);
    EXPECT_EQ(interrupt_signal(), SIGXCPU);
  }));
}

TEST(Interrupt, BlockedRequestsArrive) {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGXCPU})
    EXPECT_TRUE(in_child_process([&] {
      sigset_t mask{};
      sigemptyset(&mask);
      sigaddset(&mask, signal);
      std::signal(signal, SIG_DFL);
      ::pthread_sigmask(SIG_BLOCK, &mask, nullptr);
      ::raise(signal);
      catch_interrupts();
      EXPECT_EQ(interrupt_signal(), signal);
      EXPECT_EQ(sigismember(&signal_mask_before(), signal), 1);
    }));
}

TEST(Interrupt, ASecondRequestEndsTheProcess) {
  EXPECT_FALSE(in_child_process([] {
    catch_interrupts();
    ::raise(SIGTERM);
    std::this_thread::sleep_for(1100ms);
    ::raise(SIGTERM);
  }));
}

TEST(Interrupt, IsIgnoredUntilTheFlagIsSet) {
  simulate_interrupt(SIGTERM);
  std::atomic<bool> over{false};
  {
    const IgnoreInterrupt work(over);
    EXPECT_OK(check_interrupt());
    EXPECT_OK(sleep_until(Clock::now() + 1ms));
    std::thread([] { EXPECT_ERRC(Errc::interrupted, check_interrupt()); }).join();
    over = true;
    EXPECT_ERRC(Errc::interrupted, check_interrupt());
    over = false;
  }
  EXPECT_ERRC(Errc::interrupted, sleep_until(Clock::now() + 1h));
  simulate_interrupt(0);
}

}  // namespace
}  // namespace penstock
