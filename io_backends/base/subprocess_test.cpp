#include "io_backends/base/subprocess.hpp"

#include <gtest/gtest.h>

#include <csignal>

#include "io_backends/base/interrupt.hpp"

namespace penstock {
namespace {

Result<int> shell(const std::string& line) {
  const std::vector<std::string> argv{"sh", "-c", line};
  return run_program(argv);
}

TEST(Subprocess, GivesTheExitCode) {
  EXPECT_EQ(*shell("exit 7"), 7);
  EXPECT_EQ(*shell("kill -TERM $$"), 128 + SIGTERM);
  const std::vector<std::string> missing{"/nowhere/at-all"};
  EXPECT_EQ(run_program(missing).error().code, Errc::not_found);
}

TEST(Subprocess, TheChildIsToldToStopToo) {
  simulate_interrupt(SIGTERM);
  EXPECT_EQ(*shell("trap 'exit 5' TERM; for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & wait; done"), 5);
  simulate_interrupt(0);
}

TEST(Subprocess, KnowsItsOwnFile) {
  EXPECT_TRUE(std::filesystem::exists(*this_program()));
}

}  // namespace
}  // namespace penstock
