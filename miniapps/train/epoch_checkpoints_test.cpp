#include "miniapps/train/epoch_checkpoints.hpp"

#include <string>
#include <vector>

#include "io_backends/testing/testing.hpp"
#include "miniapps/train/miniapp.hpp"
#include "miniapps/train/train_plan.hpp"
#include "results/record/trial.hpp"

namespace penstock {
namespace {

// Larger than kPieceBytes, so that each save makes two writes.
constexpr uint64_t kModel = (uint64_t{1} << 20) + 7;

std::string content(const Tier& tier) {
  const auto reader = tier.backend->open("a.ckpt").value();
  std::string bytes(size_t(reader->size().value()), '\0');
  EXPECT_TRUE(reader->read_at(0, std::as_writable_bytes(std::span(bytes))).ok());
  return bytes;
}

Batch of_epoch(uint64_t epoch) {
  Batch batch;
  batch.epoch = epoch;
  return batch;
}

TEST(EpochCheckpoints, AreSavedWhenAnEpochIsOverAndAtTheEnd) {
  const Tier tier = open_tier("mem:checkpoints", kNoNamedTiers).value();
  const auto saves = EpochCheckpoints::make(tier, "a.ckpt", kModel, 1).value();
  const Batch first = of_epoch(0);
  const Batch second = of_epoch(1);
  EXPECT_FALSE(saves->before_step(0, &first).value());
  EXPECT_FALSE(saves->before_step(1, &first).value());
  EXPECT_ERRC(Errc::not_found, tier.backend->open("a.ckpt"));
  EXPECT_TRUE(saves->before_step(2, &second).value());
  const std::string one = content(tier);
  EXPECT_EQ(one.size(), kModel);
  EXPECT_TRUE(saves->before_step(3, nullptr).value());
  EXPECT_NE(content(tier), one) << "weights change";
  EXPECT_EQ(saves->seconds().size(), 2U);
}

TEST(EpochCheckpoints, AreRecordedWithTheBytesOfAllSaves) {
  TrainRequest request;
  const std::vector<OptionWord> words{{"model", std::to_string(kModel) + "B"}};
  const OptionSpec table[] = {kModelOption};
  request.app_options = Options::parse(table, words, "option").value();
  Trial trial;
  record_epoch_checkpoints(request, std::vector<double>{1, 2}, trial);
  EXPECT_EQ(trial.record().metrics.at("checkpoint_bytes").value(), 2.0 * kModel);
}

TEST(EpochCheckpoints, OfARunWithoutAStepAreNone) {
  const Tier tier = open_tier("mem:none", kNoNamedTiers).value();
  const auto saves = EpochCheckpoints::make(tier, "a.ckpt", kModel, 1).value();
  EXPECT_FALSE(saves->before_step(0, nullptr).value());
  EXPECT_EQ(saves->seconds().size(), 0U);
}

TEST(EpochCheckpoints, AFailureLeavesTheOneBefore) {
  const Tier tier = open_tier("mem:full,fail=write:enospc@#3", kNoNamedTiers).value();
  const auto saves = EpochCheckpoints::make(tier, "a.ckpt", kModel, 1).value();
  const Batch first = of_epoch(0);
  const Batch second = of_epoch(1);
  ASSERT_OK(saves->before_step(0, &first));
  ASSERT_OK(saves->before_step(1, &second));  // the second save makes two writes
  const std::string one = content(tier);
  EXPECT_ERRC(Errc::no_space, saves->before_step(2, nullptr), "a.ckpt");
  EXPECT_EQ(content(tier), one);
  EXPECT_EQ(saves->seconds().size(), 1U);
}

}  // namespace
}  // namespace penstock
