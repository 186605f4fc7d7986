#include <gtest/gtest.h>

#include <filesystem>

#include "io_backends/base/tier.hpp"

namespace penstock {
namespace {

TEST(Posix, WritesAndReadsBack) {
  const auto scratch =
      std::filesystem::temp_directory_path() / ("penstock-posix-" + std::to_string(::getpid()));
  auto tier = open_tier("t=posix:" + scratch.string());
  ASSERT_TRUE(tier.ok()) << tier.error().message();
  auto writer = tier->backend->create("a/b");
  ASSERT_TRUE(writer.ok()) << writer.error().message();
  const std::string text = "water";
  ASSERT_TRUE((*writer)->append(std::as_bytes(std::span(text))).ok());
  auto published = (*writer)->publish(Durability::file_and_name);
  ASSERT_TRUE(published.ok()) << published.error().message();
  std::string back(5, ' ');
  auto read = tier->backend->read_object("a/b", 5, std::as_writable_bytes(std::span(back)));
  ASSERT_TRUE(read.ok()) << read.error().message();
  EXPECT_EQ(back, text);
  std::filesystem::remove_all(scratch);
}

}  // namespace
}  // namespace penstock
