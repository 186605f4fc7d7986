#include "datagen/manifest/manifest.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include "datagen/manifest/manifest_fixture.hpp"

namespace penstock {
namespace {

namespace fs = std::filesystem;

std::string synthetic_name(uint64_t i) {
  const std::string label = std::to_string(i / 1280);
  return "n" + std::string(8 - label.size(), '0') + label + "/n" + label + "_" + std::to_string(i % 1280) +
         ".JPEG";
}

ManifestFacts some_facts() {
  return {.recipe = "imagenet",
          .format = "files",
          .codec = "jpeg",
          .seed = 0xffffffffffffffffU,
          .settings = {{"quality", "75"}, {"odd\n=,", ""}},
          .checksums = true,
          .label_names = {"cat", "d\xff\xfeog", "\xe4\xb8\xad"}};
}

ManifestBuilder synthetic(uint64_t samples) {
  ManifestBuilder builder(some_facts());
  for (uint64_t i = 0; i < samples; ++i) {
    const uint32_t object = builder.add_object(synthetic_name(i), 1000 + i % 77);
    builder.add_sample({.length = 1000 + i % 77,
                        .object = object,
                        .label = uint32_t(i % 3),
                        .crc32c = uint32_t(i * 2654435761U)});
  }
  return builder;
}

void expect_synthetic(const Manifest& manifest, uint64_t samples, uint64_t step) {
  ASSERT_EQ(manifest.samples(), samples);
  ASSERT_EQ(manifest.objects(), samples);
  std::string scratch;
  for (uint64_t i = 0; i < samples; i += step) {
    ASSERT_EQ(manifest.object_name(i, scratch), synthetic_name(i));
    ASSERT_EQ(manifest.object_bytes(i), 1000 + i % 77);
    ASSERT_EQ(manifest.sample(i).object, i);
    ASSERT_EQ(manifest.sample(i).length, 1000 + i % 77);
    ASSERT_EQ(manifest.sample(i).label, i % 3);
    ASSERT_EQ(manifest.sample(i).crc32c, uint32_t(i * 2654435761U));
  }
}

class ScratchFolder : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string name = (fs::temp_directory_path() / "penstock-manifest-XXXXXX").string();
    ASSERT_NE(::mkdtemp(name.data()), nullptr);
    folder_ = name;
  }
  void TearDown() override { fs::remove_all(folder_); }

  fs::path file(std::span<const std::byte> bytes) const {
    fs::path path = folder_ / "manifest";
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out.write(reinterpret_cast<const char*>(bytes.data()), static_cast<std::streamsize>(bytes.size()));
    return path;
  }

  fs::path folder_;
};

TEST(Manifest, ReturnsWhatTheBuilderGot) {
  auto builder = synthetic(1000);
  auto bytes = builder.finish();
  ASSERT_TRUE(bytes.ok()) << bytes.error().what;
  const auto manifest = Manifest::from_bytes(*std::move(bytes));
  ASSERT_TRUE(manifest.ok()) << manifest.error().what;
  expect_synthetic(*manifest, 1000, 1);
  EXPECT_TRUE(manifest->one_object_per_sample());
  EXPECT_EQ(manifest->largest_sample(), 1076U);
  uint64_t payload = 0;
  for (uint64_t i = 0; i < 1000; ++i) payload += 1000 + i % 77;
  EXPECT_EQ(manifest->payload_bytes(), payload);
  const ManifestFacts facts = some_facts();
  EXPECT_EQ(manifest->facts().recipe, facts.recipe);
  EXPECT_EQ(manifest->facts().format, facts.format);
  EXPECT_EQ(manifest->facts().codec, facts.codec);
  EXPECT_EQ(manifest->facts().seed, facts.seed);
  EXPECT_EQ(manifest->facts().settings, facts.settings);
  EXPECT_EQ(manifest->facts().label_names, facts.label_names);
  EXPECT_TRUE(manifest->facts().checksums);
}

TEST(Manifest, TakesAtMost64BytesASampleWithoutNames) {
  constexpr uint64_t kSamples = 1'000'000;
  auto builder = synthetic(kSamples);
  auto bytes = builder.finish();
  ASSERT_TRUE(bytes.ok()) << bytes.error().what;
  uint64_t plain_names = 0;
  for (uint64_t i = 0; i < kSamples; ++i) plain_names += synthetic_name(i).size();
  const double bytes_per_sample = double(bytes->size()) / kSamples;
  RecordProperty("bytes_per_sample", std::to_string(bytes_per_sample));
  EXPECT_LE(bytes_per_sample, 64.0);
  EXPECT_LE(bytes_per_sample, 40.5 + 0.5 * double(plain_names) / kSamples);
  const auto manifest = Manifest::from_bytes(*std::move(bytes));
  ASSERT_TRUE(manifest.ok()) << manifest.error().what;
  expect_synthetic(*manifest, kSamples, 997);
}

TEST(Manifest, SameContentGivesTheSameBytesAndChecksum) {
  auto one = synthetic(100);
  ManifestBuilder other(some_facts());
  for (uint64_t i = 0; i < 100; ++i) other.add_object(synthetic_name(i), 0);
  other.resize_samples(100);
  {
    std::vector<std::jthread> threads;
    for (uint64_t t = 0; t < 4; ++t)
      threads.emplace_back([&other, t] {
        for (uint64_t i = t; i < 100; i += 4) {
          other.set_object_bytes(uint32_t(i), 1000 + i % 77);
          other.set_sample(i, {.length = 1000 + i % 77,
                               .object = uint32_t(i),
                               .label = uint32_t(i % 3),
                               .crc32c = uint32_t(i * 2654435761U)});
        }
      });
  }
  const auto a = one.finish();
  const auto b = other.finish();
  ASSERT_TRUE(a.ok() && b.ok());
  EXPECT_EQ(*a, *b);
  auto different = synthetic(100);
  different.facts().seed = 1;
  const auto first = Manifest::from_bytes(*a);
  const auto second = Manifest::from_bytes(*different.finish());
  ASSERT_TRUE(first.ok() && second.ok());
  EXPECT_EQ(first->checksum().size(), 16U);
  EXPECT_NE(first->checksum(), second->checksum());
}

TEST(Manifest, OddNamesAreReadBack) {
  const std::vector<std::string> names{std::string(255, 'x'),
                                       std::string(254, 'x') + "y",
                                       "new\nline",
                                       "com,ma",
                                       "equals=sign",
                                       "\xf0\x9f\x90\xb1.jpg",
                                       "not utf8 \xff\xfe",
                                       "a",
                                       "a b/c",
                                       "ab",
                                       " ",
                                       "...",
                                       "-",
                                       "dir/" + std::string(255, 'z'),
                                       "dir/" + std::string(255, 'z') + "/deeper/still.jpg",
                                       "\"quoted\"",
                                       "tab\t"};
  ManifestBuilder builder({});
  for (const std::string& name : names) builder.add_object(name, 1);
  auto bytes = builder.finish();
  ASSERT_TRUE(bytes.ok()) << bytes.error().what;
  const auto manifest = Manifest::from_bytes(*std::move(bytes));
  ASSERT_TRUE(manifest.ok()) << manifest.error().what;
  std::string scratch;
  for (size_t i = 0; i < names.size(); ++i) EXPECT_EQ(manifest->object_name(i, scratch), names[i]);
  EXPECT_FALSE(manifest->one_object_per_sample());
}

TEST(Manifest, SeveralSamplesInAnObject) {
  ManifestBuilder builder({});
  const auto shard = builder.add_object("shard-0", 100);
  builder.add_sample({.offset = 0, .length = 40, .object = shard});
  builder.add_sample({.offset = 40, .length = 60, .object = shard});
  const auto manifest = Manifest::from_bytes(*builder.finish());
  ASSERT_TRUE(manifest.ok());
  EXPECT_FALSE(manifest->one_object_per_sample());
  EXPECT_EQ(manifest->payload_bytes(), 100U);
  EXPECT_EQ(manifest->sample(1).offset, 40U);
  EXPECT_EQ(manifest->sample(1).label, kNoLabel);
}

TEST(Manifest, ChecksumsOfWholeObjects) {
  ManifestBuilder builder(with_checksums(true));
  for (uint32_t i = 0; i < 70'000; ++i) {  // more than one chunk of the builder's arrays
    builder.add_object("shard-" + std::to_string(i), 100);
    if (i % 2 == 0) builder.add_sample({.offset = 10, .length = 40, .object = i, .crc32c = 77});
    builder.set_object_crc32c(i, i * 2654435761U);
  }
  const auto manifest = Manifest::from_bytes(*builder.finish());
  ASSERT_TRUE(manifest.ok()) << manifest.error().what;
  EXPECT_TRUE(manifest->facts().object_checksums);
  for (uint32_t i = 0; i < 70'000; ++i) ASSERT_EQ(manifest->object_crc32c(i), i * 2654435761U);
  EXPECT_EQ(manifest->object_crc32c(70'000), std::nullopt);
  EXPECT_EQ(manifest->object_crc32c(UINT64_MAX), std::nullopt);
}

TEST(Manifest, AnObjectThatIsItsSampleHasItsChecksumOnce) {
  ManifestFacts facts = some_facts();
  facts.object_checksums = true;
  ManifestBuilder builder(facts);
  for (uint32_t i = 0; i < 100; ++i) {
    builder.add_sample({.length = 9, .object = builder.add_object(synthetic_name(i), 9), .crc32c = i + 5});
    builder.set_object_crc32c(i, i + 5);
  }
  auto without_object_checksums = synthetic(0);
  for (uint32_t i = 0; i < 100; ++i)
    without_object_checksums.add_sample(
        {.length = 9, .object = without_object_checksums.add_object(synthetic_name(i), 9), .crc32c = i + 5});
  const auto bytes = builder.finish();
  ASSERT_TRUE(bytes.ok());
  EXPECT_EQ(*bytes, *without_object_checksums.finish());
  const auto manifest = Manifest::from_bytes(*bytes);
  ASSERT_TRUE(manifest.ok()) << manifest.error().what;
  EXPECT_FALSE(manifest->facts().object_checksums);
  for (uint32_t i = 0; i < 100; ++i) EXPECT_EQ(manifest->object_crc32c(i), i + 5);
  EXPECT_EQ(manifest->object_crc32c(100), std::nullopt);
}

TEST(Manifest, WithoutChecksumsNoneIsReturned) {
  ManifestBuilder shards(with_checksums(false));
  shards.add_sample({.offset = 2, .length = 7, .object = shards.add_object("a", 9), .crc32c = 5});
  shards.set_object_crc32c(0, 6);
  EXPECT_EQ(Manifest::from_bytes(*shards.finish())->object_crc32c(0), std::nullopt);
  ManifestBuilder files({});
  files.add_sample({.length = 9, .object = files.add_object("a", 9), .crc32c = 5});
  EXPECT_EQ(Manifest::from_bytes(*files.finish())->object_crc32c(0), std::nullopt);
}

TEST_F(ScratchFolder, Version1IsReadAsItAlwaysWas) {
  auto builder = synthetic(1000);
  const auto old = as_version_1(*builder.finish());
  const auto files = Manifest::from_bytes(old);
  ASSERT_TRUE(files.ok()) << files.error().what;
  expect_synthetic(*files, 1000, 1);
  EXPECT_EQ(files->object_crc32c(7), files->sample(7).crc32c);
  ManifestBuilder other(with_checksums(false));
  other.add_object("empty", 0);
  other.add_sample({.offset = 2, .length = 7, .object = other.add_object("shard", 9), .crc32c = 5});
  const auto shards = Manifest::open(file(as_version_1(*other.finish())));
  ASSERT_TRUE(shards.ok()) << shards.error().what;
  ASSERT_TRUE(shards->check().ok());
  std::string scratch;
  EXPECT_EQ(shards->object_name(1, scratch), "shard");
  EXPECT_EQ(shards->sample(0).crc32c, 5U);
  EXPECT_TRUE(shards->facts().checksums);
  EXPECT_FALSE(shards->facts().object_checksums);
  EXPECT_EQ(shards->object_crc32c(1), std::nullopt);
}

TEST(Manifest, EmptyIsAManifestToo) {
  ManifestBuilder builder({});
  const auto manifest = Manifest::from_bytes(*builder.finish());
  ASSERT_TRUE(manifest.ok());
  EXPECT_EQ(manifest->samples(), 0U);
  EXPECT_EQ(manifest->objects(), 0U);
}

TEST(Manifest, IndexesOutOfRangeGiveEmptyResults) {
  auto builder = synthetic(20);
  const auto manifest = Manifest::from_bytes(*builder.finish());
  ASSERT_TRUE(manifest.ok());
  std::string scratch;
  EXPECT_EQ(manifest->object_name(20, scratch), "");
  EXPECT_EQ(manifest->object_name(UINT64_MAX, scratch), "");
  EXPECT_EQ(manifest->object_bytes(20), 0U);
  EXPECT_EQ(manifest->sample(20).length, 0U);
  EXPECT_EQ(manifest->object_name(manifest->sample(20).object, scratch), "");
}

TEST(ManifestBuilder, ReportsMistakesWithNames) {
  const auto mistake = [](auto fill) {
    ManifestBuilder builder(some_facts());
    fill(builder);
    const auto bytes = builder.finish();
    EXPECT_FALSE(bytes.ok());
    return bytes.ok() ? std::string() : bytes.error().what;
  };
  EXPECT_NE(mistake([](ManifestBuilder& b) {
              b.add_object("twice.jpg", 1);
              b.add_object("twice.jpg", 1);
            }).find("'twice.jpg' is listed twice"),
            std::string::npos);
  mistake([](ManifestBuilder& b) { b.add_object("../escape", 1); });
  mistake([](ManifestBuilder& b) { b.add_object("/etc/passwd", 1); });
  mistake([](ManifestBuilder& b) { b.add_object("", 1); });
  mistake([](ManifestBuilder& b) { b.add_object(std::string(5000, 'x'), 1); });
  mistake([](ManifestBuilder& b) { b.add_sample({.object = 0}); });
  mistake([](ManifestBuilder& b) {
    b.add_object("a", 10);
    b.add_sample({.offset = 5, .length = 6});
  });
  mistake([](ManifestBuilder& b) {
    b.add_object("a", 10);
    b.add_sample({.offset = UINT64_MAX, .length = 2});
  });
  mistake([](ManifestBuilder& b) {
    b.add_object("a", 10);
    b.add_sample({.length = 10, .label = 3});
  });
}

TEST_F(ScratchFolder, MapsTheFileAndNamesItInErrors) {
  auto builder = synthetic(5000);
  const auto bytes = builder.finish();
  ASSERT_TRUE(bytes.ok());
  const auto manifest = Manifest::open(file(*bytes));
  ASSERT_TRUE(manifest.ok()) << manifest.error().what;
  ASSERT_TRUE(manifest->check().ok());
  expect_synthetic(*manifest, 5000, 1);
  EXPECT_TRUE(std::equal(bytes->begin(), bytes->end(), manifest->bytes().begin(), manifest->bytes().end()));

  const auto gone = Manifest::open(folder_ / "gone");
  ASSERT_FALSE(gone.ok());
  EXPECT_EQ(gone.error().code, Errc::not_found);
  EXPECT_NE(gone.error().what.find("gone"), std::string::npos);
  const auto folder = Manifest::open(folder_);
  ASSERT_FALSE(folder.ok());
  EXPECT_EQ(folder.error().code, Errc::invalid_argument);
  const auto empty = Manifest::open(file({}));
  ASSERT_FALSE(empty.ok());
  EXPECT_EQ(empty.error().code, Errc::corrupt);
}

}  // namespace
}  // namespace penstock
