#include "datagen/objects/folder_walk.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>

#include "datagen/objects/objects_testing.hpp"

namespace penstock {
namespace {

TEST(FolderWalk, AFailingFolderEndsTheWalkWithoutADeadlock) {
  const Tier failing = tier("mem:folder-walk-test,fail=names:eio@#1");
  const auto walk = walk_folders(failing.backend->names(), 4, [](const Entry&) { return uint16_t{0}; });
  EXPECT_FALSE(walk.ok());
}

TEST(FolderWalk, CountsByExtensionAreExactWithManyExtensions) {
  const Tier full = tier("mem:folder-walk-extensions");
  put(*full.backend, "x.jpg", "1");
  for (const char* folder : {"a", "b"}) {
    for (int i = 0; i < 70; ++i) put(*full.backend, fmt::format("{}/{}.e{:02}", folder, i, i), "x");
    for (int i = 0; i < 5; ++i) put(*full.backend, fmt::format("{}/{}.tga", folder, i), "x");
  }
  const auto classify = [](const Entry& entry) {
    return entry.name.ends_with(".jpg") ? uint16_t{0} : kNotWanted;
  };
  for (int repeat = 0; repeat < 8; ++repeat) {
    const auto walk = walk_folders(full.backend->names(), 4, classify);
    ASSERT_TRUE(walk.ok()) << walk.error().message();
    EXPECT_EQ(walk->objects(), 1U);
    EXPECT_EQ(walk->left_out_by_extension.size(), 32U);
    EXPECT_EQ(walk->left_out_by_extension.at(".tga"), 10U);
    EXPECT_EQ(walk->left_out_by_extension.at("..."), 80U);
  }
}

}  // namespace
}  // namespace penstock
