// Tests generate() in every format. The same files must result with any number of threads, after any failure,
// and from any state that an interrupted run left.
#include <gtest/gtest.h>

#include <algorithm>
#include <ostream>
#include <string>
#include <vector>

#include "datagen/codec/gzip.hpp"
#include "datagen/corpus/scan.hpp"
#include "datagen/generate/generate_target.hpp"
#include "datagen/generate/generate_testing.hpp"
#include "datagen/manifest/manifest.hpp"

namespace penstock {
namespace {

struct Case {
  std::string name;
  std::string recipe;
  std::string format;
  std::vector<OptionWord> settings;

  friend void PrintTo(const Case& one, std::ostream* out) { *out << one.name; }
};

// Returns a case for each format, with several samples per object if the format can store several. Some cases
// store samples as rows of arrays. Some have arrays whose length is known only after their last sample.
std::vector<Case> cases() {
  std::vector<Case> all{
      {"files", "cosmoflow", "files", {{"mean", "2kB"}}},
      {"tfrecord", "unet3d", "tfrecord", {{"mean", "2kB"}, {"samples_per_file", "3"}}},
      {"tfrecord_of_dlio",
       "cosmoflow",
       "tfrecord",
       {{"mean", "2kB"}, {"samples_per_file", "3"}, {"features", "dlio"}}},
      {"webdataset", "unet3d", "webdataset", {{"mean", "2kB"}, {"samples_per_file", "3"}}},
      {"npy", "cifar10", "npy", {{"samples_per_file", "3"}}},
      {"npy_of_one", "cosmoflow", "npy", {{"mean", "2kB"}, {"samples_per_file", "1"}}},
      {"npz", "unet3d", "npz", {{"mean", "2kB"}, {"samples_per_file", "3"}}},
      {"npz_of_one", "unet3d", "npz", {{"mean", "2kB"}, {"samples_per_file", "1"}}},
      {"hdf5", "unet3d", "hdf5", {{"mean", "2kB"}, {"samples_per_file", "3"}}},
      {"hdf5_of_many_fields", "hepcnn", "hdf5", {{"shape", "2,4,4"}, {"samples_per_file", "3"}}},
      {"cifar", "cifar10", "cifar", {{"samples_per_file", "3"}}},
  };
  if (!gzip_available().ok()) return all;
  for (const char* const samples : {"1", "3"})
    all.push_back({std::string("tfrecord_gzip_of_") + samples,
                   "unet3d",
                   "tfrecord",
                   {{"mean", "2kB"}, {"samples_per_file", samples}, {"compression", "gzip"}}});
  return all;
}

class GenerateFormats : public ::testing::TestWithParam<Case> {
 protected:
  GenerateFormats()
      : generation_(
            plan_generation(GetParam().recipe, GetParam().format, GetParam().settings, {.samples = 11}, 7)
                .value()) {
    Tier whole = place();
    EXPECT_TRUE(make(whole, generation_, 1).ok());
    expected_ = tree_of(whole);
    EXPECT_EQ(expected_.size(), generation_.objects + 1);
  }

  Tier place(const std::string& options = "") const {
    const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
    return tier(std::string("formats-") + test->name(), options);
  }

  // Restores the tier to the content of `tree`.
  static void restore(Tier& target, const Tree& tree) {
    for (const auto& [name, bytes] : tree_of(target))
      ASSERT_TRUE(target.backend->names().remove(name).ok()) << name;
    for (const auto& [name, bytes] : tree) put(*target.backend, name, bytes);
  }

  // Checks that every object of the data set is complete, and that all other objects belong to the state that
  // --resume uses.
  void expect_only_whole_objects(const Tree& tree) const {
    for (const auto& [name, bytes] : tree)
      if (expected_.contains(name)) {
        EXPECT_TRUE(bytes == expected_.at(name)) << name;
      } else {
        EXPECT_TRUE(name.starts_with(".penstock/generate")) << name;
      }
  }

  const Generation generation_;
  Tree expected_;
};

TEST_P(GenerateFormats, ThreadsDoNotMatter) {
  for (const unsigned threads : {2U, 7U}) {
    Tier target = place();
    restore(target, {});
    ASSERT_TRUE(make(target, generation_, threads).ok());
    expect_same(tree_of(target), expected_);
  }
}

TEST_P(GenerateFormats, AnObjectIsKeptOnlyIfAllItsBytesAreRight) {
  Tier failing = place(",fail=publish:eio@#" + std::to_string(generation_.objects + 1));
  restore(failing, {});
  ASSERT_EQ(make(failing, generation_, 1).error().code, Errc::io);
  Tier target = place();
  const Tree left = tree_of(target);
  const auto kept = std::find_if(left.begin(), left.end(),
                                 [](const auto& object) { return !object.first.starts_with(".penstock/"); });
  ASSERT_NE(kept, left.end());
  const std::string& whole = kept->second;

  std::vector<std::string> damages{"", whole + '\0', whole.substr(0, whole.size() - 1), whole.substr(1)};
  for (size_t at = 0; at < whole.size(); at += at < 64 ? 7 : whole.size() / 31 + 1) {
    damages.push_back(whole);
    damages.back()[at] ^= 1;
    damages.push_back(whole);
    damages.back()[whole.size() - 1 - at] ^= char(0x80);
  }
  for (size_t i = 0; i < damages.size(); ++i) {
    Tree damaged = left;
    damaged[kept->first] = damages[i];
    restore(target, damaged);
    const auto resumed = make(target, generation_, 2, true);
    ASSERT_TRUE(resumed.ok()) << resumed.error().what;
    EXPECT_EQ(resumed->damaged_objects, 1U) << i;
    EXPECT_GT(resumed->samples_made, 0U);
    expect_same(tree_of(target), expected_);
  }
  restore(target, left);
  const auto resumed = make(target, generation_, 2, true);
  ASSERT_TRUE(resumed.ok()) << resumed.error().what;
  EXPECT_EQ(resumed->damaged_objects, 0U);
  EXPECT_GT(resumed->samples_kept, 0U);
  expect_same(tree_of(target), expected_);
}

TEST_P(GenerateFormats, FailuresAnywhereLeaveOnlyWholeObjects) {
  for (const auto& [fault, code] : {std::pair{"eio@#{}", Errc::io}, {"enospc@#{}..", Errc::no_space}}) {
    uint64_t failed = 0;
    uint64_t successful = 0;  // successful runs: `at` is after the last operation, or its failure is allowed
    for (uint64_t at = 1; successful < 5; at += at < 20 ? 1 : 3) {
      std::string words(fault);
      words.replace(words.find("{}"), 2, std::to_string(at));
      Tier target = place();
      restore(target, {});
      Tier failing = place(",fail=any:" + words);
      const auto stopped = make(failing, generation_, 2);
      if (stopped.ok()) {
        ++successful;
        expect_same(tree_of(target), expected_);
        continue;
      }
      ++failed;
      EXPECT_EQ(stopped.error().code, code) << words << ": " << stopped.error().what;
      const bool complete = check_target(target, generation_.state, true).value_or(false);
      if (!complete) {
        Tree left = tree_of(target);
        left.erase(std::string(kManifestName));  // if there is one, it is complete, and a later step failed
        expect_only_whole_objects(left);
      }
      const auto resumed = make(target, generation_, 2, true);
      ASSERT_TRUE(resumed.ok()) << words << ": " << resumed.error().what;
      expect_same(tree_of(target), expected_);
    }
    EXPECT_GT(failed, 20U);
  }
}

INSTANTIATE_TEST_SUITE_P(Every, GenerateFormats, ::testing::ValuesIn(cases()),
                         [](const auto& row) { return row.param.name; });

Tier weather_as(const std::string& format, const std::string& compression = {}) {
  const auto* const test = ::testing::UnitTest::GetInstance()->current_test_info();
  Tier place = tier(std::string(test->name()) + "-" + format);
  std::vector<OptionWord> settings{{"shape", "2,8,8"}, {"samples_per_file", "2"}};
  if (!compression.empty()) settings.push_back({"compression", compression});
  const Generation weather = plan_generation("climate", format, settings, {.samples = 5}, 7).value();
  EXPECT_TRUE(make(place, weather, 1).ok());
  return place;
}

// A companion only describes the samples. A scan must not take it for a sample, although it knows only the
// companion's name.
TEST(ScanOfFormats, ACompanionHoldsNoSample) {
  for (const char* const format : {"tfrecord", "webdataset"}) {
    Tier place = weather_as(format);
    const Manifest made = Manifest::load(*place.backend, kManifestName).value();
    const auto scanned = scan_tier(place, {.threads = 2});
    ASSERT_TRUE(scanned.ok()) << scanned.error().message();
    EXPECT_EQ(scanned->manifest.objects(), 4U) << format;
    ASSERT_EQ(scanned->manifest.samples(), 5U) << format;
    for (uint64_t i = 0; i < 5; ++i) {
      EXPECT_EQ(scanned->manifest.sample(i).offset, made.sample(i).offset) << format;
      EXPECT_EQ(scanned->manifest.sample(i).length, made.sample(i).length) << format;
    }
    EXPECT_EQ(scanned->manifest.facts().codec, "raw");
  }
}

TEST(ScanOfFormats, ACompressedCompanionHoldsNoSample) {
  if (!gzip_available().ok()) GTEST_SKIP() << gzip_available().error().what;
  Tier place = weather_as("tfrecord", "gzip");
  const auto scanned = scan_tier(place, {.threads = 2});
  ASSERT_TRUE(scanned.ok()) << scanned.error().message();
  EXPECT_EQ(scanned->manifest.objects(), 4U);
  EXPECT_EQ(scanned->manifest.samples(), 5U);
  EXPECT_EQ(scanned->manifest.facts().codec, "raw.tfrecord.gz");
}

TEST(ScanOfFormats, StatisticsAloneAreSamples) {
  for (const std::string& format : {std::string("tfrecord"), std::string("webdataset")}) {
    Tier place = weather_as(format);
    for (const auto& [name, bytes] : tree_of(place))
      if (!name.starts_with("stats")) {
        ASSERT_TRUE(place.backend->names().remove(name).ok());
      }
    const auto scanned = scan_tier(place, {.threads = 2});
    ASSERT_TRUE(scanned.ok()) << scanned.error().message();
    EXPECT_EQ(scanned->manifest.samples(), 1U) << format;
    EXPECT_EQ(scanned->manifest.sample(0).length, 32U) << format;
    EXPECT_EQ(scanned->manifest.facts().codec, "raw");
  }
}

// A record named like statistics is a sample if its object has other records.
TEST(ScanOfFormats, ARecordOfStatisticsNextToOthersIsASample) {
  Tier place = weather_as("tfrecord");
  const Tree tree = tree_of(place);
  const std::string& stats = tree.at("stats.tfrecord");
  put(*place.backend, "stats.tfrecord", stats + stats);
  const auto scanned = scan_tier(place, {.threads = 1});
  ASSERT_TRUE(scanned.ok()) << scanned.error().message();
  EXPECT_EQ(scanned->manifest.samples(), 7U);
}

}  // namespace
}  // namespace penstock
