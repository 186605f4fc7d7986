#include "io_backends/core/result.hpp"

#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cerrno>
#include <memory>

namespace penstock {
namespace {

Result<int> half(int number) {
  if (number % 2 != 0) return make_error(Errc::invalid_argument, "odd");
  return number / 2;
}

Result<int> quarter(int number) {
  PENSTOCK_ASSIGN(const int once, half(number));
  PENSTOCK_TRY(half(once));
  return half(once);
}

TEST(Result, PassesValuesAndErrorsOn) {
  EXPECT_EQ(*quarter(8), 2);
  const Result<int> failed = quarter(6);
  ASSERT_FALSE(failed.ok());
  EXPECT_EQ(failed.error().code, Errc::invalid_argument);
  EXPECT_EQ(quarter(6).value_or(-1), -1);
}

TEST(Result, CarriesMoveOnlyValues) {
  Result<std::unique_ptr<int>> result = std::make_unique<int>(7);
  std::unique_ptr<int> owned = *std::move(result);
  EXPECT_EQ(*owned, 7);
}

TEST(Result, ErrnoBecomesAKindAndAMessage) {
  rlimit limit{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &limit), 0);
  const Error error = errno_error(ENOSPC, "cannot write", "a/b");
  EXPECT_EQ(error.code, Errc::no_space);
  EXPECT_EQ(error.message(), "cannot write 'a/b': No space left on device");
  EXPECT_EQ(errno_error(EMFILE, "cannot open", "x").message(),
            "cannot open 'x': Too many open files in this process: raise ulimit -n (now " +
                std::to_string(limit.rlim_cur) + "), or use fewer threads");
  EXPECT_EQ(errno_error(ESTALE, "cannot read", "x").code, Errc::io);
  EXPECT_EQ(errno_error(EMFILE, "cannot open", "x").code, Errc::exhausted);
  EXPECT_EQ(errno_error(EFBIG, "cannot write", "x").code, Errc::exhausted)
      << "a limit of the process, not a full disk";
  EXPECT_NE(errno_error(EFBIG, "cannot write", "x").message().find("ulimit -f"), std::string::npos);
}

TEST(Result, ExitCodesFollowTheCommandLineContract) {
  EXPECT_EQ(exit_code(Errc::invalid_argument), 2);
  EXPECT_EQ(exit_code(Errc::corrupt), 1);
  EXPECT_EQ(exit_code(Errc::unsupported), 77);
}

}  // namespace
}  // namespace penstock
