#include "io_backends/core/cli/progress.hpp"

#include <gtest/gtest.h>

namespace penstock {
namespace {

TEST(Progress, AWarningHasALineOfItsOwn) {
  testing::internal::CaptureStderr();
  {
    Progress progress(true, "reading", 10, "files");
    warn("slow");
    note("slower");
    progress.set_note("again");
  }
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_NE(out.find("\r\x1b[Kpenstock: warning: slow\npenstock: slower\n"), std::string::npos) << out;
  EXPECT_TRUE(out.ends_with("\r\x1b[K")) << "wiped in the end";
}

TEST(Progress, OneHasNoPlural) {
  testing::internal::CaptureStderr();
  {
    Progress counted(true, "copy", 0, "files");
    counted.advance(1);
    counted.set_note("a");
    Progress noted(true, "sweep", 0, "");
    noted.set_note("1 of 4 turns");
  }
  const std::string out = testing::internal::GetCapturedStderr();
  EXPECT_NE(out.find("copy: 1 file  a"), std::string::npos) << out;
  EXPECT_NE(out.find("sweep: 1 of 4 turns"), std::string::npos) << out;
}

TEST(Progress, ANameCannotAddALine) {
  testing::internal::CaptureStderr();
  warn("cannot read 'a\nb\x1b[2K\xff'");
  note("left out: 'c\rd'");
  EXPECT_EQ(testing::internal::GetCapturedStderr(),
            "penstock: warning: cannot read 'a\\nb\\x1b[2K\\xff'\npenstock: left out: 'c\\x0dd'\n");
}

TEST(Progress, PrintsNothingIfItIsNotShown) {
  testing::internal::CaptureStderr();
  {
    Progress progress(false, "reading", 10, "files");
    progress.advance(5);
  }
  EXPECT_EQ(testing::internal::GetCapturedStderr(), "");
}

}  // namespace
}  // namespace penstock
