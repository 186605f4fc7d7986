#include "io_backends/core/cli/subcommands.hpp"

#include <gtest/gtest.h>

#include <array>

namespace penstock {
namespace {

constexpr std::array<std::string_view, 2> kSave{"step", "output"};
constexpr std::array<std::string_view, 1> kLs{"long"};

Result<void> checked(std::string_view subcommand, const std::vector<std::string>& argv) {
  return check_subcommand_options(subcommand, {{"save", kSave}, {"keep", kSave}, {"ls", kLs}}, argv);
}

TEST(SubcommandOptions, AreThoseOfTheSubcommandAndOfTheCommand) {
  EXPECT_TRUE(checked("save", {"save", "--step=3", "-o", "x", "--json"}).ok());
  EXPECT_TRUE(checked("ls", {"--long", "--no-config"}).ok());
}

TEST(SubcommandOptions, OfOtherSubcommandsAreRefusedAndAttributed) {
  EXPECT_EQ(checked("ls", {"--step", "3"}).error().what, "'ls' takes no --step: that is for save, keep");
  EXPECT_EQ(checked("ls", {"-o", "x"}).error().what, "'ls' takes no --output: that is for save, keep");
  EXPECT_EQ(checked("save", {"--long"}).error().code, Errc::invalid_argument);
}

TEST(SubcommandOptions, BehindTwoDashesAreSomebodyElses) {
  EXPECT_TRUE(checked("ls", {"--", "program", "--step"}).ok());
}

}  // namespace
}  // namespace penstock
