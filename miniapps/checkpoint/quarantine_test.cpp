#include "miniapps/checkpoint/quarantine.hpp"

#include <gtest/gtest.h>

#include <string>

#include "miniapps/checkpoint/copy_checkpoint.hpp"
#include "miniapps/checkpoint/store_testing.hpp"

namespace penstock {
namespace {

class FailedDrains : public testing::Test {
 protected:
  FailedDrain drain() {
    const auto copied = copy_checkpoint(*fast_, *slow_, manifest_);
    EXPECT_FALSE(copied.ok());
    return look_into_failed_drain(*fast_, *slow_, manifest_, copied.error());
  }
  static size_t quarantined(TestStore& store) { return names_in(store.backend(), "quarantine").size(); }

  TestStore fast_{StoreRole::fast};
  TestStore slow_{StoreRole::slow};
  const CheckpointManifest manifest_ = save(*fast_, "run", {1, 0});
};

TEST_F(FailedDrains, AreLostIfTheFastCopyIsWrong) {
  damage(fast_.backend(), manifest_, "small");
  const FailedDrain failed = drain();
  EXPECT_EQ(failed.fate, DrainFate::fast_wrong);
  EXPECT_TRUE(failed.quarantined);
  EXPECT_NE(failed.why.find("small"), std::string::npos) << failed.why;
  EXPECT_EQ(quarantined(fast_), 2U) << "and why";
  EXPECT_FALSE(*fast_->has("run", {1, 0}));
}

TEST_F(FailedDrains, MoveAWrongSlowCopyToQuarantine) {
  save(*slow_, "run", {1, 0});
  for (const std::string file : {"MANIFEST", "small"}) {
    SCOPED_TRACE(file);
    const CheckpointManifest other = slow_->has("run", {1, 0}).value()
                                         ? *slow_->manifest("run", {1, 0})
                                         : save(*slow_, "run", {1, 0}, two_files(7));
    damage(slow_.backend(), other, file);
    if (file == "small") {
      const FailedDrain failed = drain();
      EXPECT_EQ(failed.fate, DrainFate::slow_quarantined);
      EXPECT_EQ(quarantined(slow_), 4U);
    } else {
      EXPECT_EQ(drain().fate, DrainFate::slow_quarantined);
      EXPECT_EQ(quarantined(slow_), 2U);
    }
    EXPECT_FALSE(*slow_->has("run", {1, 0}));
  }
  EXPECT_EQ(quarantined(fast_), 0U);
  EXPECT_OK(copy_checkpoint(*fast_, *slow_, manifest_));
}

TEST_F(FailedDrains, KeepBothIfTheNameIsTaken) {
  const CheckpointManifest other = save(*slow_, "run", {1, 0}, two_files(7));
  EXPECT_EQ(drain().fate, DrainFate::name_taken);
  EXPECT_OK(slow_->verify("run", other));
  EXPECT_OK(fast_->verify("run", manifest_));
}

TEST_F(FailedDrains, AreTriedAgainAfterATierFault) {
  for (const Errc code : {Errc::io, Errc::no_space, Errc::corrupt, Errc::truncated}) {
    const FailedDrain failed =
        look_into_failed_drain(*fast_, *slow_, manifest_, make_error(code, "on the way"));
    EXPECT_EQ(failed.fate, DrainFate::try_again);
    EXPECT_FALSE(failed.quarantined);
    EXPECT_NE(failed.why.find("on the way"), std::string::npos);
  }
  EXPECT_OK(fast_->verify("run", manifest_));
}

TEST_F(FailedDrains, QuarantineOnlyCopiesThatAreWrong) {
  for (const Errc code : {Errc::io, Errc::unsupported, Errc::not_found, Errc::exhausted, Errc::interrupted})
    EXPECT_FALSE(*quarantine_if_wrong(*fast_, "run", {1, 0}, make_error(code, "no")));
  EXPECT_TRUE(*fast_->has("run", {1, 0}));
  EXPECT_TRUE(*quarantine_if_wrong(*fast_, "run", {1, 0}, make_error(Errc::corrupt, "yes")));
  EXPECT_FALSE(*fast_->has("run", {1, 0}));
}

}  // namespace
}  // namespace penstock
