#include "datagen/format/object_names.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace penstock {
namespace {

constexpr OptionSpec kOptions[] = {kDirsOption, kShardsOption, kSamplesPerFileOption};

Result<Shards> shards(const std::vector<OptionWord>& words) {
  PENSTOCK_ASSIGN(const Options options, Options::parse(kOptions, words, "format option"));
  return Shards::parse(options);
}

TEST(Shards, DivideAllSamplesEvenly) {
  for (const uint64_t count : {1U, 2U, 3U, 7U, 64U, 100U}) {
    const Shards split = shards({{"shards", std::to_string(count)}}).value();
    for (const uint64_t samples : {1U, 2U, 63U, 64U, 65U, 1000U}) {
      const uint64_t objects = split.objects(samples);
      EXPECT_EQ(objects, std::min<uint64_t>(count, samples));
      EXPECT_EQ(split.first_sample(0, samples), 0U);
      EXPECT_EQ(split.first_sample(objects, samples), samples);
      uint64_t least = samples;
      uint64_t most = 0;
      for (uint64_t object = 0; object < objects; ++object) {
        const uint64_t samples_in_object =
            split.first_sample(object + 1, samples) - split.first_sample(object, samples);
        least = std::min(least, samples_in_object);
        most = std::max(most, samples_in_object);
      }
      EXPECT_GE(least, 1U);
      EXPECT_LE(most - least, 1U);
    }
  }
}

TEST(Shards, HoldTheRequestedNumberOfSamples) {
  const Shards split = shards({{"samples_per_file", "709"}}).value();
  EXPECT_EQ(split.objects(709), 1U);
  EXPECT_EQ(split.objects(710), 2U);
  EXPECT_EQ(split.objects(726016), 1024U);
  EXPECT_EQ(split.first_sample(3, 726016), 2127U);
  EXPECT_FALSE(shards({{"samples_per_file", "2"}, {"shards", "2"}}).ok());
  EXPECT_EQ(shards({}).value().objects(1000), 1U);
}

TEST(Shards, AreNamedByNumberAndSamplesByTheirKeys) {
  EXPECT_EQ(shards({{"shards", "64"}}).value().name(3, 64, "imagenet", "n1/n1_0", ".tar"),
            "imagenet-00003-of-00064.tar");
  const std::vector<OptionWord> one{{"samples_per_file", "1"}};
  EXPECT_EQ(shards(one).value().name(3, 64, "imagenet", "n1/n1_0", ".h5"), "n1/n1_0.h5");
  EXPECT_EQ(shards({one[0], {"dirs", "flat"}}).value().name(3, 64, "imagenet", "n1/n1_0", ".h5"),
            "n1_n1_0.h5");
}

TEST(Shards, WithSeveralSamplesAreInNoFolders) {
  const Result<Shards> refused = shards({{"shards", "2"}, {"dirs", "flat"}});
  ASSERT_FALSE(refused.ok());
  EXPECT_EQ(refused.error().code, Errc::invalid_argument);
  EXPECT_NE(refused.error().what.find("dirs=flat has no effect"), std::string::npos);
  EXPECT_NE(refused.error().what.find("samples_per_file=1"), std::string::npos);
  EXPECT_FALSE(shards({{"samples_per_file", "2"}, {"dirs", "hash:3"}}).ok());
}

TEST(Shards, NamesOfShardsAreRecognized) {
  const Shards three = shards({{"shards", "3"}}).value();
  EXPECT_TRUE(is_shard_name(three.name(0, 3, "r", "k/1", ".npy")));
  EXPECT_TRUE(is_shard_name(three.name(123456, 1234567, "a-of-b", "k/1", ".npy")));
  EXPECT_TRUE(is_shard_name("set.v2/r-00000-of-00003"));
  EXPECT_TRUE(is_shard_name("set.v2/part.1/r-00000-of-00003.npy"));
  for (const char* name : {"r-00000-of-00003.d/1", "r-00000-of-00003.d/1.npy", "r-00000-of-00003/", "k/1.npy",
                           "r-00000-of-0003.npy", "r-0000-of-00003.npy", "r00000-of-00003.npy",
                           "-of-00003.npy", "00003.npy", "", ".npy", "r-00000-of-00003x.npy"})
    EXPECT_FALSE(is_shard_name(name)) << name;
  EXPECT_TRUE(shards({{"samples_per_file", "1"}})->one_sample_per_object());
  EXPECT_FALSE(three.one_sample_per_object());
}

}  // namespace
}  // namespace penstock
