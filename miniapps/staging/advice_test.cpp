#include "miniapps/staging/advice.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>
#include <string>

#include "io_backends/testing/testing.hpp"

namespace penstock {
namespace {

constexpr double kLatency = 0.012;
constexpr double kDisk = 163e6;
constexpr double kOptane = 1603e6;

SpeedTable table_of(double latency_s, double bytes_per_s, double spread = 0) {
  SpeedTable table;
  table.sizes = {1e5, 1e6, 1e7};
  table.threads = {1, 4};
  for (const unsigned count : table.threads) {
    auto& row = table.read_s.emplace_back();
    for (const double size : table.sizes) {
      const double seconds = std::max((latency_s + size / bytes_per_s) / count, size / bytes_per_s);
      row.push_back({seconds * (1 - spread), seconds, seconds * (1 + spread)});
    }
  }
  table.write_s = {1e-3, 1e-3, 1e-2};
  return table;
}

TierSpeeds disk_and_optane(double spread = 0) {
  return {table_of(kLatency, kDisk, spread), table_of(1e-4, kOptane, spread)};
}

// The malware data set of the tf-Darshan paper: 40 of 100 files have 8% of the bytes.
SessionWork malware() {
  SessionWork work;
  for (int i = 0; i < 100; ++i) {
    FileThatWasRead& file = work.files.emplace_back();
    file.name = (i < 40 ? "a" : "b") + std::to_string(1000 + i);
    file.bytes = i < 40 ? 900'000 : 6'900'000;
    file.requests = 1;
    file.request_bytes = double(file.bytes);
    file.first_ns = (i * 37) % 100;
  }
  work.epochs = 1;
  work.epoch_bytes = work.bytes();
  return work;
}

AdviceRequest within(uint64_t capacity, std::string policy = "density") {
  AdviceRequest request;
  request.policy = std::move(policy);
  request.capacity = capacity;
  return request;
}

TEST(Advice, ThePapersCaseIsWorthStaging) {
  const auto advice = advise(malware(), disk_and_optane(), within(1U << 30U, "threshold=2MB"), UINT64_MAX);
  ASSERT_OK(advice);
  ASSERT_TRUE(advice->plan.should_stage) << advice->plan.reason;
  EXPECT_EQ(advice->plan.files.size(), 40U);
  const double before = 100 * kLatency + 450e6 / kDisk;
  const double after = 60 * kLatency + 414e6 / kDisk + 40 * 1e-4 + 36e6 / kOptane;
  EXPECT_NEAR(advice->plan.predicted.before_s, before, 0.001 * before);
  EXPECT_NEAR(advice->plan.predicted.gain, before / after - 1, 0.001);
  EXPECT_GT(advice->plan.predicted.gain, 0.19);
  EXPECT_NEAR(advice->plan.predicted.low, advice->plan.predicted.high, 1e-6) << "nothing is uncertain";
  EXPECT_NEAR(advice->slow.latency_s, kLatency, 1e-6);
  EXPECT_NEAR(advice->fast.bytes_per_s, kOptane, 1e3);
}

TEST(Advice, ASessionThatContradictsTheMeasuredSpeedsIsACaution) {
  const Output output;
  SessionWork work = malware();
  const double model_s =
      advise(work, disk_and_optane(), within(1U << 30U), UINT64_MAX).value().plan.predicted.before_s;
  for (const double ratio : {0.0, 0.2, 0.5, 0.8, 1.0, 1.3, 1.7, 25.0}) {
    work.observed_s = ratio * model_s;
    const Advice advice = advise(work, disk_and_optane(), within(1U << 30U), UINT64_MAX).value();
    const bool contradicts = ratio != 0 && (ratio < 0.6 || ratio > 1.6);
    EXPECT_EQ(advice_text(advice, work, false, output).find("caution: an epoch") != std::string::npos,
              contradicts)
        << ratio;
    const Json json = advice_json(advice, work);
    if (ratio == 0)
      EXPECT_TRUE(json["observed_over_model"].is_null());
    else
      EXPECT_NEAR(json["observed_over_model"].get<double>(), ratio, 0.01);
  }
  AdviceRequest other = within(1U << 30U);
  other.threads = 4;
  const Advice advice = advise(work, disk_and_optane(), other, UINT64_MAX).value();
  EXPECT_TRUE(advice_json(advice, work)["observed_over_model"].is_null())
      << "other threads than the session's";
}

// The caution recommends --cache asis only if it is not in force, and no cache where the tier is emulated.
TEST(Advice, AFasterProgramGetsARemedyThatIsNotInForce) {
  SessionWork work = malware();
  const auto base = [&] { return advise(work, disk_and_optane(), within(1U << 30U), UINT64_MAX).value(); };
  work.observed_s = 0.2 * base().plan.predicted.before_s;
  Advice advice = base();
  const auto recommends = [&](bool assumes_cold) {
    return advice_text(advice, work, assumes_cold, {}).find("--cache asis") != std::string::npos;
  };
  EXPECT_TRUE(recommends(true));
  EXPECT_FALSE(recommends(false));
  advice.plan.slow.spec = "/data,latency=2ms";
  EXPECT_FALSE(recommends(true));
  EXPECT_NE(advice_text(advice, work, true, {}).find("latency=2ms"), std::string::npos);
}

TEST(Advice, ABetterPolicyIsNamed) {
  const Advice advice =
      advise(malware(), disk_and_optane(), within(36'000'000, "threshold=2MB"), UINT64_MAX).value();
  const Advice worse =
      advise(malware(), disk_and_optane(), within(36'000'000, "first-come"), UINT64_MAX).value();
  EXPECT_EQ(advice_text(advice, malware(), false, {}).find("caution: with --policy"), std::string::npos);
  EXPECT_NE(advice_text(worse, malware(), false, {}).find("caution: with --policy"), std::string::npos);
}

TEST(Advice, DensityBeatsFirstComeInTheSameRoom) {
  const auto advice = advise(malware(), disk_and_optane(), within(36'000'000), UINT64_MAX);
  ASSERT_OK(advice);
  EXPECT_EQ(advice->plan.files.size(), 40U);
  for (const PlannedFile& file : advice->plan.files) EXPECT_EQ(file.bytes, 900'000U);
  ASSERT_EQ(advice->outcomes.size(), 4U);
  for (const PolicyOutcome& outcome : advice->outcomes) {
    EXPECT_LE(outcome.bytes, 36'000'000U) << outcome.policy;
    EXPECT_LE(outcome.gain, advice->outcomes.front().gain + 1e-9) << outcome.policy;
    if (outcome.policy != "first-come") continue;
    EXPECT_LT(outcome.gain, 0.5 * advice->outcomes.front().gain);
  }
}

TEST(Advice, TheIntervalHoldsTheGainAndGrowsWithTheSpread) {
  const auto narrow = advise(malware(), disk_and_optane(0.01), within(1U << 30U), UINT64_MAX);
  const auto wide = advise(malware(), disk_and_optane(0.2), within(1U << 30U), UINT64_MAX);
  for (const auto* advice : {&narrow, &wide}) {
    const PredictedGain& gain = (*advice)->plan.predicted;
    EXPECT_LE(gain.low, gain.gain);
    EXPECT_GE(gain.high, gain.gain);
  }
  const auto width = [](const Advice& advice) {
    return advice.plan.predicted.high - advice.plan.predicted.low;
  };
  EXPECT_GT(width(*wide), 3 * width(*narrow));
}

// Noise makes one of two equal tiers look faster at some read sizes. Such a difference must not lead to a
// plan.
TEST(Advice, TwoTiersThatAreAlikeAreNotStagedBetween) {
  for (const double noise : {0.01, 0.05, 0.2}) {
    int staged = 0;
    for (unsigned seed = 0; seed < 100; ++seed) {
      std::mt19937 random(seed);
      std::normal_distribution<double> draw(1, noise);
      TierSpeeds alike{table_of(kLatency, kDisk), table_of(kLatency, kDisk)};
      for (SpeedTable* const table : {&alike.slow, &alike.fast})
        for (auto& of_threads : table->read_s)
          for (std::vector<double>& repeats : of_threads)
            for (double& seconds : repeats) seconds *= std::max(draw(random), 0.1);
      staged += advise(malware(), alike, within(1U << 30U), UINT64_MAX)->plan.should_stage ? 1 : 0;
    }
    EXPECT_LE(staged, 3) << "of 100, with noise of " << noise;
  }
}

TEST(Advice, OfOneRepeatAloneNothingSmallIsBelieved) {
  const auto once = [](double latency_s) {
    SpeedTable table = table_of(latency_s, kDisk);
    for (auto& of_threads : table.read_s)
      for (std::vector<double>& repeats : of_threads) repeats.resize(1);
    return table;
  };
  const auto little =
      advise(malware(), {once(kLatency), once(0.9 * kLatency)}, within(1U << 30U), UINT64_MAX);
  ASSERT_OK(little);
  EXPECT_FALSE(little->plan.should_stage);
  const auto much = advise(malware(), {once(kLatency), once(0.1 * kLatency)}, within(1U << 30U), UINT64_MAX);
  ASSERT_OK(much);
  EXPECT_TRUE(much->plan.should_stage) << much->plan.reason;
}

TEST(Advice, CopyingHasPaidAfterSomeEpochs) {
  const auto advice = advise(malware(), disk_and_optane(), within(36'000'000), UINT64_MAX);
  ASSERT_OK(advice);
  const PredictedGain& gain = advice->plan.predicted;
  EXPECT_GT(gain.copy_s, 40 * (kLatency + 900'000 / kDisk));
  EXPECT_NEAR(gain.break_even_epochs, gain.copy_s / (gain.before_s - gain.after_s), 1e-9);
  AdviceRequest few = within(36'000'000);
  few.epochs = 1;
  const auto not_enough = advise(malware(), disk_and_optane(), few, UINT64_MAX);
  EXPECT_FALSE(not_enough->plan.should_stage);
  EXPECT_NE(not_enough->plan.reason.find("pays off after"), std::string::npos);
  EXPECT_TRUE(not_enough->plan.files.empty());
}

TEST(Advice, SaysWhyNot) {
  const auto reason = [](const SessionWork& work, const TierSpeeds& speeds, const AdviceRequest& request,
                         uint64_t free) {
    const auto advice = advise(work, speeds, request, free);
    EXPECT_OK(advice);
    EXPECT_FALSE(advice->plan.should_stage);
    return advice->plan.reason;
  };
  const TierSpeeds same{table_of(kLatency, kDisk), table_of(kLatency, kDisk)};
  EXPECT_NE(reason(malware(), same, within(1U << 30U), UINT64_MAX).find("no file faster"), std::string::npos);
  EXPECT_NE(reason(malware(), disk_and_optane(), within(1U << 30U), 0).find("no free space"), std::string::npos);
  EXPECT_NE(reason(malware(), disk_and_optane(), within(1000), UINT64_MAX).find("no file fits"),
            std::string::npos);
  SessionWork cached = malware();
  for (FileThatWasRead& file : cached.files) file.cached = 1;
  EXPECT_NE(reason(cached, disk_and_optane(), within(1U << 30U), UINT64_MAX).find("page cache"),
            std::string::npos);
  SessionWork computing = malware();
  computing.think_s = 3600;
  EXPECT_NE(reason(computing, disk_and_optane(), within(1U << 30U), UINT64_MAX).find("the gain would be"),
            std::string::npos);
  EXPECT_NE(reason(malware(), disk_and_optane(2), within(1U << 30U), UINT64_MAX).find("a gain is not certain"),
            std::string::npos);
}

TEST(Advice, WhatIsCachedIsNotGained) {
  SessionWork half = malware();
  for (size_t i = 0; i < half.files.size(); i += 2) half.files[i].cached = 1;
  const auto advice = advise(half, disk_and_optane(), within(1U << 30U), UINT64_MAX);
  ASSERT_OK(advice);
  EXPECT_EQ(advice->plan.files.size(), 50U) << "what is cached saves nothing";
  EXPECT_NEAR(advice->plan.predicted.before_s, 0.5 * (100 * kLatency + 450e6 / kDisk), 0.05);
}

TEST(Advice, IsTheSameForTheSameSeedAndFitsItsRoom) {
  const auto one = advise(malware(), disk_and_optane(0.1), within(UINT64_MAX), 100'000'000);
  const auto other = advise(malware(), disk_and_optane(0.1), within(UINT64_MAX), 100'000'000);
  EXPECT_EQ(one->plan.files, other->plan.files);
  EXPECT_DOUBLE_EQ(one->plan.predicted.low, other->plan.predicted.low);
  EXPECT_EQ(one->capacity, 98'000'000U);
  EXPECT_LE(one->plan.bytes(), one->capacity);
  EXPECT_ERRC(Errc::invalid_argument, advise(malware(), disk_and_optane(), within(1, "largest"), 1),
              "largest");
}

}  // namespace
}  // namespace penstock
