#include "miniapps/checkpoint/restart.hpp"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "io_backends/core/checksums/crc32c.hpp"
#include "io_backends/core/ranks/ranks_testing.hpp"
#include "io_backends/core/system/interrupt.hpp"
#include "miniapps/checkpoint/copy_checkpoint.hpp"
#include "miniapps/checkpoint/store_testing.hpp"

namespace penstock {
namespace {

class Restarts : public testing::Test {
 protected:
  Result<Restart> choose(const RestartRequest& request = {}) {
    CheckpointStore* const stores[] = {&*slow_, &*fast_};
    return choose_restart(stores, "run", request);
  }
  // Saves a checkpoint to the fast store and copies it to the slow one.
  CheckpointManifest on_both(uint64_t step) {
    const CheckpointManifest manifest = save(*fast_, "run", {step, 0}, two_files(unsigned(step)));
    EXPECT_OK(copy_checkpoint(*fast_, *slow_, manifest));
    return manifest;
  }

  TestStore fast_{StoreRole::fast};
  TestStore slow_{StoreRole::slow};
};

TEST_F(Restarts, StartFromTheBeginningWithoutCheckpoints) {
  save(*fast_, "another", {9, 0});
  const auto restart = choose();
  ASSERT_OK(restart);
  EXPECT_EQ(restart->store, nullptr);
  EXPECT_EQ(restart->run, "run");
  EXPECT_TRUE(restart->rejected.empty());
  EXPECT_EQ(restart->lost_steps, 0U);
}

TEST_F(Restarts, TakeTheNewestFromTheFastTier) {
  on_both(20);
  const CheckpointManifest newest = on_both(40);
  const auto restart = choose();
  ASSERT_OK(restart);
  EXPECT_EQ(restart->store, &*fast_);
  EXPECT_EQ(restart->manifest, newest);
  EXPECT_TRUE(restart->rejected.empty());
  EXPECT_EQ(restart->lost_steps, 0U);
}

TEST_F(Restarts, TakeTheNewestFromAnyTier) {
  save(*slow_, "run", {60, 0});
  on_both(40);
  EXPECT_EQ(choose()->store, &*slow_);
  save(*fast_, "run", {60, 1});
  EXPECT_EQ(choose()->store, &*fast_);
  EXPECT_EQ(choose()->manifest.id, (CheckpointId{60, 1}));
}

TEST_F(Restarts, ListAgainIfACheckpointIsRemovedMeanwhile) {
  on_both(20);
  const CheckpointManifest newest = save(*fast_, "run", {40, 0}, two_files(40));
  // A drain ends after the slow tier was listed. So the list lacks the slow copy, and the drain evicts the
  // fast copy.
  Tier tier = slow_.place().tier("slow");
  bool drained = false;
  tier.backend =
      std::make_unique<WatchedBackend>(std::move(tier.backend), nullptr, [&](std::string_view folder) {
        if (folder != "ckpt/run" || drained) return;
        drained = true;
        EXPECT_OK(copy_checkpoint(*fast_, *slow_, newest));
        EXPECT_OK(fast_->remove("run", newest.id));
      });
  const auto slow = CheckpointStore::open(tier).value();
  CheckpointStore* const stores[] = {slow.get(), &*fast_};
  const auto restart = choose_restart(stores, "run");
  ASSERT_OK(restart);
  EXPECT_TRUE(drained);
  EXPECT_EQ(restart->store, slow.get());
  EXPECT_EQ(restart->manifest.id, newest.id);
  EXPECT_TRUE(restart->rejected.empty());
}

TEST_F(Restarts, TakeTheSlowCopyIfTheFastOneIsDamaged) {
  on_both(20);
  const CheckpointManifest newest = on_both(40);
  damage(fast_.backend(), newest, "rank-0.bin");
  const auto restart = choose({.quarantine_wrong = true});
  ASSERT_OK(restart);
  EXPECT_EQ(restart->store, &*slow_);
  EXPECT_EQ(restart->manifest.id, newest.id);
  EXPECT_EQ(restart->lost_steps, 0U);
  ASSERT_EQ(restart->rejected.size(), 1U);
  EXPECT_EQ(restart->rejected[0].tier, "fast");
  EXPECT_EQ(restart->rejected[0].id, newest.id);
  EXPECT_NE(restart->rejected[0].why.find("rank-0.bin"), std::string::npos);
  EXPECT_NE(restart->rejected[0].why.find("moved to quarantine"), std::string::npos);
  EXPECT_FALSE(*fast_->has("run", newest.id));
  EXPECT_EQ(names_in(fast_.backend(), "quarantine").size(), 2U);
  EXPECT_TRUE(choose()->rejected.empty());
}

TEST_F(Restarts, QuarantineOnlyOnRequest) {
  const CheckpointManifest newest = on_both(40);
  damage(fast_.backend(), newest, "small");
  ASSERT_OK(choose());
  EXPECT_TRUE(*fast_->has("run", newest.id));
}

TEST_F(Restarts, TakeAnOlderCheckpointAndReportLostSteps) {
  const CheckpointManifest old = on_both(20);
  const CheckpointManifest newest = on_both(40);
  damage(fast_.backend(), newest, "small");
  put_text(slow_.backend(), CheckpointStore::folder("run", newest.id) + "/MANIFEST", "");
  const auto restart = choose();
  ASSERT_OK(restart);
  EXPECT_EQ(restart->store, &*fast_);
  EXPECT_EQ(restart->manifest, old);
  EXPECT_EQ(restart->lost_steps, 20U);
  EXPECT_EQ(restart->rejected.size(), 2U);
}

TEST_F(Restarts, NameAllRejectedCopiesIfNoneIsComplete) {
  damage(fast_.backend(), save(*fast_, "run", {20, 0}), "small");
  damage(slow_.backend(), save(*slow_, "run", {40, 0}), "small");
  const auto restart = choose();
  ASSERT_OK(restart);
  EXPECT_EQ(restart->store, nullptr);
  ASSERT_EQ(restart->rejected.size(), 2U);
  EXPECT_EQ(restart->rejected[0].id.step, 40U);
  EXPECT_EQ(restart->lost_steps, 40U);
}

TEST_F(Restarts, ReadNoFilesIfNotRequested) {
  const CheckpointManifest newest = on_both(40);
  damage(fast_.backend(), newest, "rank-0.bin");
  const uint64_t before = fast_.backend().moved_bytes().read;
  const auto restart = choose({.read_files = false});
  ASSERT_OK(restart);
  EXPECT_EQ(restart->store, &*fast_);
  EXPECT_LT(fast_.backend().moved_bytes().read - before, 100000U);
}

TEST_F(Restarts, ObeyTheRequestedStepAndRanks) {
  on_both(20);
  on_both(40);
  auto restart = choose({.step = 20});
  ASSERT_OK(restart);
  EXPECT_EQ(restart->manifest.id.step, 20U);
  EXPECT_EQ(restart->lost_steps, 20U);
  EXPECT_TRUE(restart->rejected.empty());
  EXPECT_EQ(choose({.step = 30})->store, nullptr);
  EXPECT_EQ(choose({.ranks = 1})->manifest.id.step, 40U);
  restart = choose({.quarantine_wrong = true, .ranks = 4});
  ASSERT_OK(restart);
  EXPECT_EQ(restart->store, nullptr);
  ASSERT_EQ(restart->rejected.size(), 4U);
  EXPECT_EQ(restart->rejected[0].why, "it is from 1 ranks, not 4");
  EXPECT_TRUE(*fast_->has("run", {40, 0}));
}

TEST_F(Restarts, IgnoreHints) {
  on_both(40);
  for (const char* hint : {"", "run 000000000099.0\n", "\xff\xff"}) {
    put_text(fast_.backend(), "LATEST", hint);
    EXPECT_EQ(choose()->manifest.id.step, 40U);
  }
  fast_->hint_latest("run", {20, 0});
  EXPECT_EQ(choose()->manifest.id.step, 40U);
}

class UnreadableRestarts : public Restarts {
 protected:
  Result<Restart> choose_with(const std::string& fault, bool slow_too = true) {
    const Tier tier = fast_.place().tier("fast", "fail=" + fault);
    PENSTOCK_ASSIGN(const auto store, CheckpointStore::open(tier));
    std::vector<CheckpointStore*> stores = {store.get()};
    if (slow_too) stores.push_back(&*slow_);
    return choose_restart(stores, "run", {.quarantine_wrong = true});
  }
};

TEST_F(UnreadableRestarts, NeverStartFromTheBeginning) {
  save(*fast_, "run", {40, 0});
  // Unreadable in turn: the whole store, one manifest, one file.
  EXPECT_ERRC(Errc::io, choose_with("names:eio@#1.."), "store 'fast'");
  EXPECT_ERRC(Errc::io, choose_with("open:eio@#2.."), "store 'fast'");
  EXPECT_ERRC(Errc::io, choose_with("read:eio@#4.."), "store 'fast'");
  EXPECT_ERRC(Errc::io, choose_with("names:eio@#1..", false));
  EXPECT_TRUE(*fast_->has("run", {40, 0}));  // it may still be whole
}

TEST_F(UnreadableRestarts, UseAnotherCopy) {
  on_both(20);
  on_both(40);
  const auto restart = choose_with("open:eio@#2..");
  ASSERT_OK(restart);
  EXPECT_EQ(restart->store, &*slow_);
  EXPECT_EQ(restart->manifest.id.step, 40U);
  EXPECT_EQ(restart->rejected.size(), 1U);
  EXPECT_TRUE(*fast_->has("run", {40, 0}));
}

TEST_F(UnreadableRestarts, DoNotTakeAnOlderStepWithoutDescriptors) {
  on_both(20);
  on_both(40);
  EXPECT_ERRC(Errc::exhausted, choose_with("open:emfile@#3"));
  simulate_interrupt(SIGTERM);
  EXPECT_ERRC(Errc::interrupted, choose());
  simulate_interrupt(0);
}

TEST_F(UnreadableRestarts, LeaveALaterFormatInPlace) {
  save(*fast_, "run", {40, 0});
  change(fast_.backend(), "ckpt/run/000000000040.0/MANIFEST", [](std::string& text) {
    text.resize(text.rfind("crc32c "));
    text.replace(text.find("\"format\": 1"), 11, "\"format\": 2");
    text += fmt::format("crc32c {:08x}\n", crc32c(bytes_of(text)));
  });
  EXPECT_ERRC(Errc::unsupported, choose({.quarantine_wrong = true}), "format 2");
  EXPECT_TRUE(*fast_->has("run", {40, 0}));
}

TEST_F(Restarts, AreTheSameOnAllRanks) {
  on_both(20);
  const CheckpointManifest newest = on_both(40);
  damage(fast_.backend(), newest, "small");
  RankThreads::run(3, [&](Communicator& ranks) {
    CheckpointStore* const stores[] = {&*fast_, &*slow_};
    const auto restart = choose_restart(stores, "run", {}, ranks);
    ASSERT_OK(restart);
    EXPECT_EQ(restart->store, &*slow_);
    EXPECT_EQ(restart->manifest.files, newest.files);
    EXPECT_EQ(restart->rejected.size(), 1U);
    const auto none = choose_restart(stores, "none", {}, ranks);
    ASSERT_OK(none);
    EXPECT_EQ(none->store, nullptr);
    EXPECT_EQ(none->run, "none");
  });
}

TEST_F(Restarts, FailOnAllRanksIfOneDoesNotSeeTheCheckpoint) {
  on_both(40);
  TestStore elsewhere(StoreRole::fast);
  RankThreads::run(3, [&](Communicator& ranks) {
    CheckpointStore* const stores[] = {ranks.rank() == 2 ? &*elsewhere : &*fast_};
    EXPECT_ERRC(Errc::not_found, choose_restart(stores, "run", {}, ranks), "rank 2 of 3");
  });
}

TEST_F(Restarts, FailOnAllRanksIfRankZeroCannotRead) {
  on_both(40);
  const Tier tier = fast_.place().tier("fast", "fail=names:eio@#1..");
  const auto unreadable = CheckpointStore::open(tier);
  ASSERT_OK(unreadable);
  RankThreads::run(2, [&](Communicator& ranks) {
    CheckpointStore* const stores[] = {ranks.root() ? unreadable->get() : &*fast_};
    EXPECT_ERRC(Errc::io, choose_restart(stores, "run", {}, ranks));
  });
}

TEST_F(Restarts, AreWrittenAsJson) {
  EXPECT_TRUE(restart_json(*choose()).at("chosen").is_null());
  on_both(20);
  const CheckpointManifest newest = on_both(40);
  damage(fast_.backend(), newest, "small");
  damage(slow_.backend(), newest, "small");
  const Json json = restart_json(*choose());
  EXPECT_EQ(json.at("run"), "run");
  EXPECT_EQ(json.at("chosen").at("tier"), "fast");
  EXPECT_EQ(json.at("chosen").at("step"), 20);
  EXPECT_EQ(json.at("chosen").at("durability"), "volatile");
  EXPECT_EQ(json.at("lost_steps"), 20);
  ASSERT_EQ(json.at("rejected").size(), 2U);
  EXPECT_EQ(json.at("rejected")[1].at("tier"), "slow");
  EXPECT_EQ(json.at("rejected")[1].at("step"), 40);
}

}  // namespace
}  // namespace penstock
