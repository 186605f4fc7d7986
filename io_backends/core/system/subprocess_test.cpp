#include "io_backends/core/system/subprocess.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <thread>

#include "io_backends/core/system/interrupt.hpp"

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

TEST(Subprocess, TheChildGetsTheSignalToo) {
  // The child makes this file when it is ready for the signal.
  const std::filesystem::path ready =
      std::filesystem::temp_directory_path() / ("penstock-ready-" + std::to_string(::getpid()));
  std::jthread signal_thread([&](const std::stop_token& stop) {
    while (!std::filesystem::exists(ready) && !stop.stop_requested())
      std::this_thread::sleep_for(std::chrono::milliseconds(1));
    simulate_interrupt(SIGTERM);
  });
  const Result<int> exit_code = shell("trap 'exit 5' TERM; : > '" + ready.string() +
                                      "'; for i in 1 2 3 4 5 6 7 8 9; do sleep 1 & wait; done");
  signal_thread.request_stop();
  signal_thread.join();
  simulate_interrupt(0);
  std::filesystem::remove(ready);
  ASSERT_TRUE(exit_code.ok());
  EXPECT_EQ(*exit_code, 5);
}

TEST(Subprocess, FindsTheFileOfThisProgram) {
  EXPECT_TRUE(std::filesystem::exists(*this_program()));
}

}  // namespace
}  // namespace penstock
