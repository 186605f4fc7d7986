#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "datagen/format/format.hpp"
#include "datagen/format/sample_type.hpp"

namespace penstock {
namespace {

Result<std::unique_ptr<Format>> files(const std::string& dirs) {
  const auto info = format_registry().find("files");
  if (!info.ok()) return info.error();
  const std::vector<OptionWord> words{{"dirs", dirs}};
  const auto options = Options::parse((*info)->options, words, "format option");
  if (!options.ok()) return options.error();
  return (*info)->make(*options);
}

TEST(Files, NamesFollowTheLayout) {
  const auto name = [](const std::string& dirs) {
    return (*files(dirs))->object_name(3, 10, "imagenet", "n00000012/n00000012_345", ".JPEG");
  };
  EXPECT_EQ(name("class"), "n00000012/n00000012_345.JPEG");
  EXPECT_EQ(name("flat"), "n00000012_n00000012_345.JPEG");
  EXPECT_EQ(name("hash:1"), "0/n00000012_n00000012_345.JPEG");
  const std::string hashed = name("hash:256");
  ASSERT_EQ(hashed.find('/'), 2U) << hashed;
  EXPECT_EQ(hashed.substr(3), "n00000012_n00000012_345.JPEG");
  EXPECT_EQ(hashed, name("hash:256"));
}

TEST(Files, HashSpreadsEvenly) {
  const auto format = files("hash:16");
  ASSERT_TRUE(format.ok());
  std::vector<int> counts(16);
  for (int i = 0; i < 16000; ++i) {
    const std::string name = (*format)->object_name(0, 1, "", "a/" + std::to_string(i), "");
    ++counts[size_t(std::stoi(name.substr(0, 1), nullptr, 16))];
  }
  for (const int count : counts) {
    EXPECT_GT(count, 800);
    EXPECT_LT(count, 1200);
  }
}

TEST(Files, RefusesLayoutsItDoesNotKnow) {
  for (const char* dirs : {"classes", "hash", "hash:", "hash:0", "hash:x", "hash:9z", "hash:-1",
                           "hash:99999999999999999999", ""}) {
    const auto format = files(dirs);
    ASSERT_FALSE(format.ok()) << dirs;
    EXPECT_EQ(format.error().code, Errc::invalid_argument);
  }
}

TEST(SampleType, ExtensionsInAnyCase) {
  EXPECT_EQ(extension_of("a.b/c.JPEG"), ".JPEG");
  EXPECT_EQ(extension_of("a.b/c"), "");
  EXPECT_EQ(extension_of(".config"), "");
  EXPECT_EQ(codec_of("x.JpG"), "jpeg");
  EXPECT_EQ(codec_of("x.png"), "png");
  EXPECT_EQ(codec_of("x.xyz"), "raw");
  EXPECT_EQ(codec_of("x."), "raw");
  const auto types = SampleTypes::parse(".png,JPG");
  ASSERT_TRUE(types.ok());
  EXPECT_TRUE(types->accepts("a/b.jpg"));
  EXPECT_TRUE(types->accepts("b.PNG"));
  EXPECT_FALSE(types->accepts("b.jpeg"));
  EXPECT_FALSE(types->accepts("b.jp"));
  EXPECT_FALSE(types->accepts("b.jpgx"));
  EXPECT_FALSE(types->accepts(".b.jpg"));
  EXPECT_FALSE(types->accepts("b"));
  EXPECT_FALSE(SampleTypes::parse("").ok());
  EXPECT_FALSE(SampleTypes::parse("a/b").ok());
}

}  // namespace
}  // namespace penstock
